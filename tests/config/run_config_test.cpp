#include "config/run_config.h"

#include <initializer_list>

#include "catch.h"
#include "config/schema.h"
#include "good_run.h"

using namespace troupe;
using namespace troupe::config;
using namespace std::chrono_literals;

namespace {

template <class Enum>
void check_choices(const char* name,
                   std::initializer_list<std::pair<std::string_view, Enum>> choices) {
  const Key& key = *schema().rows(name).front();
  INFO(name);
  std::size_t number = 0;
  for (const auto& [word, meaning] : choices) {
    CHECK(key.choices.at(number++) == word);
    Enum read{};
    config::detail::read_value(key, Value(std::string(word)), read);
    CHECK(read == meaning);
  }
}

}  // namespace

TEST_CASE("the struct of a run has the values of its file", "[config]") {
  const auto loaded = load_text(R"(
name = "g"
seed = 7
exactness = "samples"
model = { kind = "gpt2", layers = 6, width = 48, heads = 6, context = 8, vocab = 99, dropout = 0.1 }
data = { train = "a.bin", validate = "b.bin", order = "sequential" }
batch = { global = 32, micro = 4 }
[optimizer]
kind = "sgd"
lr = 0.5
momentum = 0.9
nesterov = true
weight_decay = 0.25
clip_norm = 2
schedule = { kind = "cosine", warmup_steps = 20, total_steps = 900, min_lr = 0.125 }
[pipeline]
schedule = "interleaved"
stages = [0, 1, 2, 4, 6]
chunks = 2
replicas = 2
recompute = true
memory = "2GiB"
[parallel]
groups = 4
exchange = "server"
[precision]
compute = "fp16"
loss_scale = { initial_power = 10, growth_interval = 100 }
[elastic]
nodes = "2:8"
copies = 3
replan = "nodes"
[checkpoint]
dir = "out/{name}/{name}"
every = "100 steps"
keep = 5
[train]
steps = 1000
eval_every = 100
eval_batches = 2
export = "final.safetensors"
threads = 3
[limits]
head_patience = "1h"
[log]
every = 1
)");
  INFO((loaded ? "" : loaded.error().text));
  REQUIRE(loaded.ok());
  const RunConfig& config = loaded->config;
  CHECK(config.name == "g");
  CHECK(config.seed == 7);
  CHECK(config.exactness == RunConfig::Exactness::samples);
  CHECK(config.model.kind == "gpt2");
  CHECK(config.model.init == "random");
  CHECK(*config.model.options.find("tied")->boolean());
  CHECK(config.model.options.find("dropout")->number() == 0.1);
  CHECK_FALSE(config.model.options.find("kind"));
  CHECK(config.data.train == "a.bin");
  CHECK(config.data.validate == "b.bin");
  CHECK(config.data.order == RunConfig::Data::Order::sequential);
  CHECK(config.batch.global == 32);
  CHECK(config.batch.micro == 4);
  CHECK(config.optimizer.kind == models::OptimizerConfig::Kind::sgd);
  CHECK(config.optimizer.momentum == 0.9);
  CHECK(config.optimizer.nesterov);
  CHECK(config.optimizer.weight_decay == 0.25);
  CHECK(config.optimizer.clip_norm == 2);
  CHECK(config.optimizer.rate.kind == models::LearningRate::Kind::cosine);
  CHECK(config.optimizer.rate.lr == 0.5);
  CHECK(config.optimizer.rate.warmup_steps == 20);
  CHECK(config.optimizer.rate.total_steps == 900);
  CHECK(config.optimizer.rate.min_lr == 0.125);
  CHECK(config.pipeline.stages.count == 4);
  CHECK(config.pipeline.stages.boundaries == std::vector{0, 1, 2, 4, 6});
  CHECK(config.pipeline.chunks == 2);
  CHECK(config.pipeline.replicas == 2);
  CHECK(config.pipeline.recompute.in(0));
  CHECK(config.pipeline.memory == 2147483648);
  CHECK(config.parallel.groups == 4);
  CHECK(config.parallel.exchange == RunConfig::Parallel::Exchange::server);
  CHECK(config.precision.compute == RunConfig::Precision::Compute::fp16);
  CHECK(config.precision.loss_scale_power == 10);
  CHECK(config.precision.growth_interval == 100);
  CHECK(config.elastic.nodes == CountRange{2, 8});
  CHECK(config.elastic.copies == 3);
  CHECK(config.elastic.replan == RunConfig::Elastic::Replan::nodes);
  CHECK(config.checkpoint.directory == "out/g/g");
  CHECK(config.checkpoint.every == Interval{.steps = 100});
  CHECK(config.checkpoint.keep == 5);
  CHECK(config.train.steps == 1000);
  CHECK(config.train.eval_every == 100);
  CHECK(config.train.eval_batches == 2);
  CHECK(config.train.export_path == "final.safetensors");
  CHECK(config.train.threads == 3);
  CHECK(config.limits.head_patience == 1h);
  CHECK(config.log.every == 1);
}

TEST_CASE("keys that a file omits are auto, none or a default", "[config]") {
  const auto loaded = load_text(
      "model = { kind = \"mlp\", dims = [2, 2] }\ndata.train = \"x\"\nbatch.global = 4\n"
      "train.steps = 50\n");
  REQUIRE(loaded.ok());
  const RunConfig& config = loaded->config;
  CHECK(config.name == "run");  // Named like its file.
  CHECK_FALSE(config.data.validate);
  CHECK_FALSE(config.batch.micro);
  CHECK_FALSE(config.pipeline.stages.count);
  CHECK(config.pipeline.stages.boundaries.empty());
  CHECK_FALSE(config.pipeline.memory);
  CHECK_FALSE(config.precision.compute);
  CHECK_FALSE(config.train.eval_every);
  CHECK_FALSE(config.train.export_path);
  CHECK_FALSE(config.train.threads);
  CHECK_FALSE(config.staleness.step_every);
  CHECK(config.optimizer.kind == models::OptimizerConfig::Kind::adamw);
  CHECK(config.optimizer.weight_decay == 0.01);
  CHECK(config.optimizer.clip_norm == 0);
  CHECK(config.optimizer.rate.total_steps == 50);
  CHECK(config.checkpoint.directory == "runs/run/checkpoints");
  CHECK(config.checkpoint.every == Interval{.time = 5min});
  CHECK(config.limits.silence_floor == 300ms);
  CHECK(config.limits.suspend_patience == 24h);
}

TEST_CASE("a single number of nodes is both the minimum and the maximum", "[config]") {
  CHECK(load_text(good_run, {"elastic.nodes=4"})->config.elastic.nodes == CountRange{4, 4});
}

TEST_CASE("a run without a name is named like its file", "[config]") {
  const auto name = [](const std::string& path) {
    return load({.path = path, .read = in_memory({{path, good_run}})})->config.name;
  };
  CHECK(name("some/where/gpt-small.toml") == "gpt-small");
  CHECK(name("my run!.toml") == "my-run-");
  CHECK(name(".hidden.toml") == "run");
}

TEST_CASE("gradients are folded in groups that do not depend on the plan", "[config]") {
  RunConfig config;
  config.batch.global = 96;
  CHECK(micro_batches(config, 8) == 12);
  CHECK(reduction_groups(config, 12) == 6);
  CHECK(reduction_groups(config, 32) == 8);
  CHECK(reduction_groups(config, 7) == 7);
  CHECK(reduction_groups(config, 11) == 1);
  CHECK(reduction_groups(config, 1) == 1);
  config.parallel.groups = 4;
  CHECK(reduction_groups(config, 12) == 4);
}

TEST_CASE("the words of a choice stand in the order of its enumeration", "[config]") {
  check_choices<models::OptimizerConfig::Kind>("optimizer.kind",
                                               {{"sgd", models::OptimizerConfig::Kind::sgd},
                                                {"adam", models::OptimizerConfig::Kind::adam},
                                                {"adamw", models::OptimizerConfig::Kind::adamw},
                                                {"nadamw", models::OptimizerConfig::Kind::nadamw},
                                                {"muon", models::OptimizerConfig::Kind::muon}});
  check_choices<models::LearningRate::Kind>("optimizer.schedule.kind",
                                            {{"constant", models::LearningRate::Kind::constant},
                                             {"linear", models::LearningRate::Kind::linear},
                                             {"cosine", models::LearningRate::Kind::cosine}});
  check_choices<models::OptimizerConfig::MomentumForm>(
      "optimizer.momentum_form", {{"pytorch", models::OptimizerConfig::MomentumForm::pytorch},
                                  {"sutskever", models::OptimizerConfig::MomentumForm::sutskever}});
  check_choices<RunConfig::Staleness::GapPenalty>(
      "staleness.gap_penalty", {{"none", RunConfig::Staleness::GapPenalty::none},
                                {"elementwise", RunConfig::Staleness::GapPenalty::elementwise},
                                {"tensor_norm", RunConfig::Staleness::GapPenalty::tensor_norm}});
  check_choices<RunConfig::Staleness::GapSource>(
      "staleness.gap_source", {{"stash", RunConfig::Staleness::GapSource::stash},
                               {"last_update", RunConfig::Staleness::GapSource::last_update}});
  check_choices<RunConfig::Staleness::GapStatistics>(
      "staleness.gap_statistics", {{"corrected", RunConfig::Staleness::GapStatistics::corrected},
                                   {"ftpipe", RunConfig::Staleness::GapStatistics::ftpipe}});
  check_choices<RunConfig::Staleness::GapScale>(
      "staleness.gap_scale", {{"step_ema", RunConfig::Staleness::GapScale::step_ema},
                              {"max_lr", RunConfig::Staleness::GapScale::max_lr}});
  check_choices<RunConfig::Staleness::GapFactor>(
      "staleness.gap_factor", {{"none", RunConfig::Staleness::GapFactor::none},
                               {"scalar", RunConfig::Staleness::GapFactor::scalar},
                               {"max", RunConfig::Staleness::GapFactor::max}});
  check_choices<RunConfig::Staleness::Predict>(
      "staleness.predict", {{"none", RunConfig::Staleness::Predict::none},
                            {"msnag", RunConfig::Staleness::Predict::msnag},
                            {"aggmsnag", RunConfig::Staleness::Predict::aggmsnag},
                            {"linear", RunConfig::Staleness::Predict::linear}});
  check_choices<RunConfig::Staleness::LinearizeAt>(
      "staleness.linearize_at",
      {{"current", RunConfig::Staleness::LinearizeAt::current},
       {"forward", RunConfig::Staleness::LinearizeAt::forward},
       {"extrapolated", RunConfig::Staleness::LinearizeAt::extrapolated}});
  check_choices<RunConfig::Staleness::SecondMoment>(
      "staleness.second_moment", {{"guarded", RunConfig::Staleness::SecondMoment::guarded},
                                  {"frozen", RunConfig::Staleness::SecondMoment::frozen}});
  check_choices<RunConfig::Staleness::Clip>(
      "staleness.clip", {{"local", RunConfig::Staleness::Clip::local},
                         {"local_sqrt_share", RunConfig::Staleness::Clip::local_sqrt_share}});
  check_choices<RunConfig::Parallel::Exchange>(
      "parallel.exchange", {{"all_to_all", RunConfig::Parallel::Exchange::all_to_all},
                            {"server", RunConfig::Parallel::Exchange::server}});
  check_choices<RunConfig::Precision::Compute>(
      "precision.compute", {{"fp32", RunConfig::Precision::Compute::fp32},
                            {"tf32", RunConfig::Precision::Compute::tf32},
                            {"fp16", RunConfig::Precision::Compute::fp16},
                            {"fp16-chain", RunConfig::Precision::Compute::fp16_chain},
                            {"fp16-gpu", RunConfig::Precision::Compute::fp16_gpu},
                            {"bf16", RunConfig::Precision::Compute::bf16},
                            {"bf16-pairs", RunConfig::Precision::Compute::bf16_pairs},
                            {"bf16-blocks", RunConfig::Precision::Compute::bf16_blocks},
                            {"bf16-gpu", RunConfig::Precision::Compute::bf16_gpu}});
  check_choices<RunConfig::Train::Device>(
      "train.device",
      {{"cpu", RunConfig::Train::Device::cpu}, {"cuda", RunConfig::Train::Device::cuda}});
  check_choices<RunConfig::Exactness>("exactness", {{"bits", RunConfig::Exactness::bits},
                                                    {"samples", RunConfig::Exactness::samples}});
  check_choices<RunConfig::Data::Order>("data.order",
                                        {{"shuffled", RunConfig::Data::Order::shuffled},
                                         {"sequential", RunConfig::Data::Order::sequential}});
}
