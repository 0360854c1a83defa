#include "config/recipe.h"

#include "catch.h"
#include "core/json.h"
#include "good_run.h"

using namespace troupe;
using namespace troupe::config;

namespace {

Value recipe(std::vector<std::string> settings = {}) {
  return recipe_of(load_text(good_run, std::move(settings))->tree);
}

std::vector<std::string> changed_by(std::vector<std::string> settings) {
  return recipe_changes(recipe(std::move(settings)), recipe());
}

}  // namespace

TEST_CASE("a recipe lists the keys that affect the numbers, one per line", "[config]") {
  CHECK(recipe_text(recipe()) ==
        "seed = 1\n"
        "exactness = \"bits\"\n"
        "model.kind = \"gpt2\"\n"
        "model.vocab = 4096\n"
        "model.context = 256\n"
        "model.width = 384\n"
        "model.layers = 6\n"
        "model.heads = 6\n"
        "model.tied = true\n"
        "model.dropout = 0\n"
        "model.init = \"random\"\n"
        "data.train = \"made:markov\"\n"
        "data.order = \"shuffled\"\n"
        "batch.global = 32\n"
        "batch.micro = 4\n"
        "optimizer.kind = \"adamw\"\n"
        "optimizer.lr = 0.001\n"
        "optimizer.betas = [0.9,0.999]\n"
        "optimizer.eps = 1e-08\n"
        "optimizer.weight_decay = 0.01\n"
        "optimizer.schedule.kind = \"constant\"\n"
        "optimizer.schedule.warmup_steps = 0\n"
        "optimizer.schedule.total_steps = 0\n"
        "optimizer.schedule.min_lr = 0\n"
        "precision.compute = \"auto\"\n"
        "precision.loss_scale.initial_power = 16\n"
        "precision.loss_scale.growth_interval = 2000\n"
        "pipeline.tensor = 1\n"
        "parallel.groups = \"auto\"\n"
        "parallel.reduction = \"tree\"\n");
}

TEST_CASE("settings of the plan do not change the recipe", "[config]") {
  CHECK(changed_by({"pipeline.stages=3", "pipeline.replicas=2", "pipeline.schedule=gpipe",
                    "pipeline.recompute=true", "pipeline.cuts=sublayers",
                    "parallel.exchange=server", "elastic.nodes=1:2", "elastic.replan=nodes",
                    "checkpoint.keep=9", "train.steps=2000", "train.threads=2", "name=other",
                    "log.every=1", "staleness.step_every=4", "limits.strikes=9"})
            .empty());
}

TEST_CASE("the differences between two recipes are named", "[config]") {
  CHECK(changed_by({"batch.global=64", "seed=2"}) ==
        std::vector<std::string>{"seed = 2, was 1", "batch.global = 64, was 32"});
  CHECK(changed_by({"optimizer.clip_norm=1"}) ==
        std::vector<std::string>{"optimizer.clip_norm = 1, was not there"});
  CHECK(recipe_changes(recipe(), recipe({"optimizer.clip_norm=1"})) ==
        std::vector<std::string>{"optimizer.clip_norm is not there, was 1"});
}

TEST_CASE("the shape of an asynchronous pipeline belongs to the recipe", "[config]") {
  const auto changes = recipe_changes(recipe({"pipeline.schedule=pipedream", "pipeline.stages=3"}),
                                      recipe({"pipeline.schedule=pipedream", "pipeline.stages=2"}));
  CHECK(changes == std::vector<std::string>{"pipeline.stages = 3, was 2"});
  CHECK(recipe_changes(recipe({"pipeline.schedule=pipedream", "pipeline.cuts=sublayers"}),
                       recipe({"pipeline.schedule=pipedream"})) ==
        std::vector<std::string>{"pipeline.cuts = \"sublayers\", was not there"});
}

TEST_CASE("a learning rate schedule that ends with the run adds its length to the recipe",
          "[config]") {
  CHECK(recipe_changes(recipe({"optimizer.schedule.kind=cosine", "train.steps=2000"}),
                       recipe({"optimizer.schedule.kind=cosine"})) ==
        std::vector<std::string>{"optimizer.schedule.total_steps = 2000, was 1000"});
}

TEST_CASE("a recipe survives a round trip through JSON", "[config]") {
  const Value now = recipe({"optimizer.clip_norm=1.0", "model.dropout=0.5"});
  const Value kept = *parse_json(to_json(now));
  CHECK(recipe_text(kept) == recipe_text(now));
  CHECK(recipe_digest(kept) == recipe_digest(now));
  CHECK(recipe_changes(now, kept).empty());
  CHECK(recipe_digest(recipe({"seed=2"})) != recipe_digest(recipe()));
}

TEST_CASE("a recipe contains the steps left out that are done", "[config]") {
  const auto loaded = load_text(good_run, {"train.skip_steps=[7, 12]"});
  REQUIRE(loaded);
  CHECK(loaded->config.train.skip_steps == std::vector<std::int64_t>{7, 12});
  const auto now = recipe_of(loaded->tree);
  CHECK(to_json(recipe_until(now, 6)) == to_json(recipe_until(recipe(), 6)));
  CHECK(recipe_changes(recipe_until(now, 7), recipe()) ==
        std::vector<std::string>{"train.skip_steps = [7], was not there"});
  const auto more = leave_out_step(leave_out_step(*loaded, 9), 12);
  CHECK(more.config.train.skip_steps == std::vector<std::int64_t>{7, 9, 12});
  CHECK(recipe_changes(recipe_until(recipe_of(more.tree), 8), recipe_until(now, 8)).empty());
}

TEST_CASE("what a run does at a spike is no part of its recipe", "[config]") {
  CHECK(changed_by({"train.on_spike=skip", "train.spike_factor=3", "train.spike_norm_factor=9",
                    "train.spike_window=20", "train.spike_most=5"})
            .empty());
}
