// Targets that do not count.

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "catch.h"
#include "training.h"

using namespace troupe;
using namespace troupe::models;

namespace {

constexpr int counted_samples = 16;
constexpr std::int32_t no_target = -100;

OptimizerConfig adamw_of_counts() {
  auto config = OptimizerConfig::of(OptimizerConfig::Kind::adamw);
  config.rate.lr = 0.01;
  config.clip_norm = 0.5;
  return config;
}

Model ignoring_model(std::optional<std::int64_t> ignore) {
  Value options;
  options.set("kind", "gpt2");
  for (const auto& [key, value] :
       {std::pair("vocab", 13), {"context", 9}, {"width", 8}, {"layers", 3}, {"heads", 2}})
    options.set(key, value);
  options.set("dropout", 0.1);
  if (ignore) {
    Value loss;
    loss.set("ignore", *ignore);
    options.set("loss", loss);
  }
  return build("gpt2", options);
}

Model ignoring_mlp() {
  Value options, loss;
  loss.set("ignore", std::int64_t{no_target});
  options.set("kind", "mlp");
  options.set("dims", Value::List{6, 8, 5});
  options.set("loss", loss);
  return build("mlp", options);
}

/// Makes the first targets of each sample ones that do not count, in some samples all.
void leave_out_some(Batch& batch) {
  const auto length = batch.target.shape()[1];
  for (std::int64_t sample = 0; sample < counted_samples; ++sample)
    std::fill_n(batch.target.data<std::int32_t>() + sample * length, sample * 4 % (length + 1),
                no_target);
}

void leave_out_all(Batch& batch) {
  std::ranges::fill(batch.target.numbers<std::int32_t>(), no_target);
}

struct CountedData {
  MemoryPool memory;
  Stream stream{memory};

  Batch some(const Model& model, std::uint64_t step) {
    Batch batch = made_batch(stream, model, counted_samples, step);
    leave_out_some(batch);
    return batch;
  }
};

std::string bits_after(const Pipeline::Recipe& recipe, const Way& way) {
  CountedData data;
  Pipeline pipeline(recipe, way);
  pipeline.start(3);
  for (std::uint64_t step = 0; step < 3; ++step) pipeline.step(data.some(recipe.model, step));
  return to_string(pipeline.digest());
}

}  // namespace

TEST_CASE("where targets do not count, cuts, halves and recomputation change no bit", "[models]") {
  const Model model = ignoring_model(no_target);
  const Pipeline::Recipe recipe{
      .model = model, .optimizer = adamw_of_counts(), .micro_batches = 8, .groups = 4};
  const auto wanted = bits_after(recipe, {});
  for (const auto& cuts : {std::vector<int>{1}, {2}, {1, 2}})
    for (const auto backward : {Way::Backward::whole, Way::Backward::in_halves})
      for (const auto keep : {Keep::everything, Keep::input})
        CHECK(bits_after(recipe, {.cuts = cuts, .backward = backward, .keep = keep}) == wanted);
}

TEST_CASE("a target that may be ignored changes no bit where none is", "[models]") {
  CountedData data;
  const Model plain = ignoring_model({}), careful = ignoring_model(no_target);
  Pipeline first({.model = plain, .optimizer = adamw_of_counts()}, {}),
      second({.model = careful, .optimizer = adamw_of_counts()}, {});
  first.start(3);
  second.start(3);
  for (std::uint64_t step = 0; step < 3; ++step) {
    const auto batch = made_batch(data.stream, plain, counted_samples, step);
    const auto one = first.step(batch), other = second.step(batch);
    CHECK(one.loss == other.loss);
    CHECK(one.norm == other.norm);
  }
  CHECK(to_string(first.digest()) == to_string(second.digest()));
}

TEST_CASE("a target weighs the same in whatever micro-batch it is", "[models]") {
  const Model model = ignoring_model(no_target);
  auto config = OptimizerConfig::of(OptimizerConfig::Kind::sgd);
  config.rate.lr = 1;
  CountedData data;
  std::vector<double> losses, norms;
  for (const int micro_batches : {1, 2, 8, 16}) {
    Pipeline pipeline({.model = model, .optimizer = config, .micro_batches = micro_batches}, {});
    pipeline.start(3);
    const auto result = pipeline.step(data.some(model, 1));
    losses.push_back(result.loss);
    norms.push_back(result.norm);
  }
  // Dropout is keyed by sample, so only the order of additions differs.
  for (std::size_t i = 1; i < losses.size(); ++i) {
    CHECK(losses[i] == Approx(losses[0]).epsilon(1e-6));
    CHECK(norms[i] == Approx(norms[0]).epsilon(1e-5));
  }
}

TEST_CASE("samples that do not count leave the step of the others", "[models]") {
  const Model model = ignoring_mlp();
  auto config = OptimizerConfig::of(OptimizerConfig::Kind::sgd);
  config.rate.lr = 1;
  const auto clipped = GENERATE(false, true);
  if (clipped) config.clip_norm = 0.01;
  CountedData data;
  auto batch = made_batch(data.stream, model, counted_samples, 2);
  for (std::int64_t i = counted_samples / 4; i < counted_samples; ++i)
    batch.target.data<std::int32_t>()[i] = no_target;
  const Batch counted{batch.input.slice(0, counted_samples / 4),
                      batch.target.slice(0, counted_samples / 4)};
  Pipeline with({.model = model, .optimizer = config, .micro_batches = 4}, {}),
      without({.model = model, .optimizer = config, .micro_batches = 1}, {});
  with.start(3);
  without.start(3);
  const auto one = with.step(batch), other = without.step(counted);
  CHECK(one.loss == Approx(other.loss).epsilon(1e-6));
  CHECK(one.norm == Approx(other.norm).epsilon(1e-6));
  const auto found = with.weights(), wanted = without.weights();
  for (std::size_t i = 0; i < wanted.size(); ++i)
    for (std::int64_t k = 0; k < wanted[i].tensor.count(); ++k)
      REQUIRE(std::abs(found[i].tensor.f32()[k] - wanted[i].tensor.f32()[k]) < 1e-6);
}

TEST_CASE("a step in which no target counts is skipped", "[models]") {
  const Model model = ignoring_model(no_target);
  CountedData data;
  Pipeline pipeline({.model = model, .optimizer = adamw_of_counts()}, {.cuts = {2}});
  pipeline.start(3);
  pipeline.step(data.some(model, 0));
  const auto before = to_string(pipeline.digest());
  auto empty = made_batch(data.stream, model, counted_samples, 1);
  leave_out_all(empty);
  const auto result = pipeline.step(empty);
  CHECK(result.loss == 0);
  CHECK(result.norm == 0);
  CHECK(to_string(pipeline.digest()) == before);
  CHECK(pipeline.loss_scale() == LossScale{0, 0, 1});
}

TEST_CASE("a skipped step counts as no update", "[models]") {
  const Model model = ignoring_mlp();
  CountedData data;
  Pipeline skipping({.model = model, .optimizer = adamw_of_counts()}, {}),
      plain({.model = model, .optimizer = adamw_of_counts()}, {});
  skipping.start(3);
  plain.start(3);
  auto empty = made_batch(data.stream, model, counted_samples, 7);
  leave_out_all(empty);
  skipping.step(empty);
  for (std::uint64_t step = 0; step < 3; ++step) {
    const auto batch = made_batch(data.stream, model, counted_samples, step);
    skipping.step(batch);
    plain.step(batch);
  }
  CHECK(to_string(skipping.digest()) == to_string(plain.digest()));
}

TEST_CASE("an evaluation smooths nothing and has no z-loss", "[models]") {
  const auto mlp = [](bool is_plain) {
    Value options, loss;
    loss.set("ignore", std::int64_t{no_target});
    loss.set("smoothing", is_plain ? 0.0 : 0.5);
    loss.set("z", is_plain ? 0.0 : 0.5);
    options.set("kind", "mlp");
    options.set("dims", Value::List{6, 8, 5});
    options.set("loss", loss);
    return build("mlp", options);
  };
  MemoryPool memory;
  Stream stream(memory);
  const auto evaluated = [&](const Model& model) {
    const Stage stage(model, {0, static_cast<int>(model.units.size())}, {});
    const Optimizer optimizer(adamw_of_counts(), stage.parameters(), stage.buffers(),
                              kernels::Precision::fp32);
    auto batch = made_batch(stream, model, counted_samples, 2);
    batch.target.data<std::int32_t>()[3] = no_target;
    const auto weights = optimizer.initial(stream, 3);
    const auto losses = stage.evaluate(stream, *weights, batch.input, batch.target).stream;
    stream.wait();
    const auto all = losses.numbers<float>();
    return std::vector<float>(all.begin(), all.end());
  };
  const auto plain = evaluated(mlp(true));
  CHECK(plain[3] == 0);
  CHECK(evaluated(mlp(false)) == plain);
}

TEST_CASE("the mean over micro-batches is over their targets that count", "[models]") {
  CHECK(mean_of(std::vector<MeanLoss>{{2, 1}, {4, 3}}) == Approx(3.5));
  CHECK(mean_of(std::vector<MeanLoss>{{2, 0}, {4, 3}}) == Approx(4));
  CHECK(mean_of(std::vector<MeanLoss>{{0, 0}, {0, 0}}) == 0);
  // Equal counts: the bits of the mean of means.
  CHECK(mean_of(std::vector<MeanLoss>{{0.1, 7}, {0.2, 7}, {0.7, 7}}) == (0.1 + 0.2 + 0.7) / 3);
}
