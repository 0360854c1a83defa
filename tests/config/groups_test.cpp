#include "catch.h"
#include "config/model_kinds.h"
#include "config/pages/render.h"
#include "config/recipe.h"
#include "good_run.h"

using namespace troupe;
using namespace troupe::config;

namespace {

const std::string no_decay =
    "[[optimizer.group]]\n"
    "match = [\"*.bias\", \"*ln_*\"]\n"
    "weight_decay = 0\n";

}  // namespace

TEST_CASE("groups give parameters settings of their own", "[config]") {
  const auto loaded =
      load_text(good_run + no_decay + "[[optimizer.group]]\nmatch = [\"wte*\"]\nlr = 0.1\n");
  REQUIRE(loaded.ok());
  const auto& optimizer = loaded->config.optimizer;
  REQUIRE(optimizer.groups.size() == 2);
  CHECK(optimizer.groups[0] ==
        models::ParameterGroup{.match = {"*.bias", "*ln_*"}, .weight_decay = 0.0});
  CHECK(optimizer.groups[1] == models::ParameterGroup{.match = {"wte*"}, .lr = 0.1});
  CHECK(optimizer.for_parameter("h.0.ln_1.weight").weight_decay == 0);
  CHECK(optimizer.for_parameter("wte.weight").weight_decay == optimizer.weight_decay);
  CHECK(optimizer.for_parameter("wte.weight").rate.at(0) == 0.1 * optimizer.rate.at(0));
}

TEST_CASE("the configuration that is shown says what each group takes", "[config]") {
  const auto loaded = load_text(good_run + no_decay);
  REQUIRE(loaded.ok());
  const auto text = show(*loaded, Show::values);
  CHECK(text.find("group = [{ match = [\"*.bias\", \"*ln_*\"], weight_decay = 0 }]") !=
        std::string::npos);
  CHECK(text.find("# group 1 takes 50 parameters: h.0.ln_1.weight, ...\n"
                  "# no group takes 26 parameters: wte.weight, ...\n") != std::string::npos);
  const auto again = load_text(text);
  REQUIRE(again.ok());
  CHECK(again->tree == loaded->tree);
}

TEST_CASE("a group may be frozen, but not all parameters", "[config]") {
  const auto loaded = load_text(good_run, {"optimizer.group=[{match=[\"wte*\"], frozen=true}]"});
  REQUIRE(loaded.ok());
  CHECK(loaded->config.optimizer.groups[0].frozen);
  CHECK(show(*loaded, Show::values).find("# group 1 freezes 1 parameter: wte.weight\n") !=
        std::string::npos);
  CHECK(complaint({"optimizer.group=[{match=[\"*\"], frozen=true}]"}) ==
        "error: the frozen groups of optimizer.group take all parameters of the model; leave some "
        "to train");
  const auto recipe = [](const std::string& setting) {
    return recipe_text(recipe_of(load_text(good_run, {setting})->tree));
  };
  CHECK(recipe("optimizer.group=[{match=[\"wte*\"], frozen=false}]") ==
        recipe("optimizer.group=[{match=[\"wte*\"]}]"));
}

TEST_CASE("groups are part of the recipe in one form", "[config]") {
  const auto recipe = [](const std::string& setting) {
    return recipe_text(recipe_of(load_text(good_run, {setting})->tree));
  };
  const std::string none = recipe("name=other");
  CHECK(none.find("optimizer.group") == std::string::npos);
  CHECK(recipe("optimizer.group=[]") == none);
  const auto one = recipe("optimizer.group=[{match=[\"*.bias\"], weight_decay=0}]");
  CHECK(one.find("optimizer.group = [{\"match\":[\"*.bias\"],\"weight_decay\":0}]\n") !=
        std::string::npos);
  CHECK(recipe("optimizer.group=[{weight_decay=0.0, lr=1, match=[\"*.bias\"]}]") == one);
  CHECK(recipe("optimizer.group=[{match=[\"*.bias\"], weight_decay=0, lr=2}]") != one);
}

TEST_CASE("errors of groups name what is wrong", "[config]") {
  CHECK(
      complaint({"optimizer.group=[{match=[\"*.gain\"]}]"}) ==
      "error: optimizer.group 1 with match = [\"*.gain\"] matches no parameter; the model has 76, "
      "such as wte.weight, h.1.mlp.c_proj.bias, h.4.ln_1.weight, ln_f.bias");
  CHECK(complaint({"optimizer.group=[{match=[\"*\"]}, {match=[\"wte*\"], lr=2}]"}) ==
        "error: optimizer.group 2 with match = [\"wte*\"] takes no parameter: earlier groups take "
        "all that it matches; write it before them");
  CHECK(complaint({"optimizer.group=[{match=\"*.bias\"}]"}) ==
        "error: optimizer.group.match wants a list of strings, but found a string \"*.bias\"");
  CHECK(complaint({"optimizer.group=[{match=[]}]"}) ==
        "error: optimizer.group.match wants a list of strings, but found a list []");
  CHECK(complaint({"optimizer.group=[{weight_decay=0}]"}) ==
        "error: missing key 'optimizer.group.match': a list of strings");
  CHECK(complaint({"optimizer.group=[{match=[\"*\"], lr=0}]"}) ==
        "error: optimizer.group.lr wants a number of at least 1e-9, but found an integer 0");
  CHECK(complaint({"optimizer.group=[{match=[\"*\"], weight_deccay=0}]"}) ==
        "error: unknown key 'optimizer.group.weight_deccay'");
  CHECK(complaint({"optimizer.group={match=[\"*\"]}"}) ==
        "error: optimizer.group wants a list of tables, but found a table { match = [\"*\"] }");
  const auto twice = load_text(good_run + no_decay + "\n[[optimizer.group]]\nmatch = [\"gain\"]\n");
  REQUIRE_FALSE(twice.ok());
  CHECK(twice.error().text.find("optimizer.group 2 with match") != std::string::npos);
}

TEST_CASE("the wsd schedule has keys of its own", "[config]") {
  const auto loaded =
      load_text(good_run, {"optimizer.schedule={kind=\"wsd\", warmup_steps=10, total_steps=1000, "
                           "decay=\"sqrt\", min_lr=1e-5}"});
  REQUIRE(loaded.ok());
  const auto& rate = loaded->config.optimizer.rate;
  CHECK(rate.kind == models::LearningRate::Kind::wsd);
  CHECK(rate.decay == models::LearningRate::Decay::sqrt);
  CHECK(rate.steps_of_decay() == 100);
  CHECK(complaint({"optimizer.schedule.decay_steps=5"}) ==
        "error: optimizer.schedule.decay_steps has no meaning with optimizer.schedule.kind = "
        "\"constant\"; it belongs to wsd");
  CHECK(complaint({"optimizer.schedule={kind=\"wsd\", warmup_steps=10, total_steps=100, "
                   "decay_steps=95}"}) ==
        "error: optimizer.schedule.decay_steps = 95 is more than the 90 steps between "
        "optimizer.schedule.warmup_steps = 10 and optimizer.schedule.total_steps = 100");
}

TEST_CASE("low-rank additions have a table of the model", "[config]") {
  const auto loaded = load_text(good_run, {"model.lora={rank=4, match=[\"*.c_attn\"]}"});
  REQUIRE(loaded.ok());
  const auto text = recipe_text(recipe_of(loaded->tree));
  CHECK(text.find("model.lora.rank = 4\nmodel.lora.match = [\"*.c_attn\"]\n") != std::string::npos);
  const auto model = model_from(loaded->config.model.table());
  REQUIRE(model.ok());
  CHECK(model->frozen.size() == 76);
  CHECK(recipe_text(recipe_of(load_text(good_run)->tree)).find("lora") == std::string::npos);
}

TEST_CASE("errors of low-rank additions name what is wrong", "[config]") {
  CHECK(complaint({"model.lora.rank=4"}) ==
        "error: model.lora.match is missing, or not a list of patterns such as [\"*.c_attn\"]");
  CHECK(complaint({"model.lora.match=[\"*\"]"}) ==
        "error: model.lora.rank is missing, or not an integer from 1 to 65536");
  CHECK(complaint({"model.lora={rank=4, match=[\"*.q_proj\"]}"}) ==
        "error: model.lora.match matches no projection of linear, attention or feed_forward steps; "
        "the model has matrices such as h.0.attn.c_attn, h.0.attn.c_proj, h.0.mlp.c_fc, "
        "h.0.mlp.c_proj");
  CHECK(complaint({"model.lora={rank=4, rate=1, match=[\"*\"]}"}) ==
        "error: model.lora.rate wants a number from 0 to 0.99, but found an integer 1");
  CHECK(complaint({"model.lora={rank=0, match=[\"*\"]}"}) ==
        "error: model.lora.rank wants an integer from 1 to 65536, but found an integer 0");
}

TEST_CASE("the loss has a table of the model", "[config]") {
  const auto loaded = load_text(good_run, {"model.loss={ignore=-100, smoothing=0.1, z=0.25}"});
  REQUIRE(loaded.ok());
  const auto text = recipe_text(recipe_of(loaded->tree));
  CHECK(text.find("model.loss.ignore = -100\nmodel.loss.smoothing = 0.1\nmodel.loss.z = 0.25\n") !=
        std::string::npos);
  CHECK(loaded->config.model.ignored_target() == -100);
  const auto model = model_from(loaded->config.model.table());
  REQUIRE(model.ok());
  CHECK(model->ignore == -100);
  const auto plain = load_text(good_run);
  CHECK(recipe_text(recipe_of(plain->tree)).find("model.loss") == std::string::npos);
  CHECK_FALSE(plain->config.model.may_ignore());
}

TEST_CASE("errors of the loss name what is wrong", "[config]") {
  CHECK(
      complaint({"model.loss.ignore=0.5"}) ==
      "error: model.loss.ignore wants an integer of at least -2147483648, but found a number 0.5");
  CHECK(complaint({"model.loss.smoothing=1.5"}) ==
        "error: model.loss.smoothing wants a number from 0 to 1, but found a number 1.5");
  CHECK(complaint({"model.loss.z=-1"}) ==
        "error: model.loss.z wants a number from 0 to 1, but found an integer -1");
}

TEST_CASE("an average of weights belongs to the recipe", "[config]") {
  const auto loaded = load_text(good_run, {"train.ema=0.999"});
  REQUIRE(loaded.ok());
  CHECK(loaded->config.optimizer.ema == 0.999);
  CHECK(recipe_text(recipe_of(loaded->tree)).find("train.ema = 0.999\n") != std::string::npos);
  CHECK(recipe_text(recipe_of(load_text(good_run)->tree)).find("ema") == std::string::npos);
  CHECK(complaint({"train.ema=1"}) ==
        "error: train.ema wants a number from 1e-9 to 0.9999999, but found an integer 1");
}
