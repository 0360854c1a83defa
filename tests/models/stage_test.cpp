// Properties that a plan must not change: all numbers stay the same.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "catch.h"
#include "training.h"

using namespace troupe;
using namespace troupe::models;

namespace {

constexpr int samples = 16;

OptimizerConfig adamw() {
  auto config = OptimizerConfig::of(OptimizerConfig::Kind::adamw);
  config.rate.lr = 0.01;
  config.clip_norm = 0.5;
  return config;
}

Digest after_training(const Pipeline::Recipe& recipe, const Way& way) {
  MemoryPool data_memory;
  Stream data_stream(data_memory);
  Pipeline pipeline(recipe, way);
  pipeline.start(3);
  for (std::uint64_t step = 0; step < 3; ++step)
    pipeline.step(made_batch(data_stream, recipe.model, samples, step));
  return pipeline.digest();
}

/// Returns all ways to cut the units into stages.
std::vector<std::vector<int>> all_cuts(int units) {
  std::vector<std::vector<int>> all;
  for (int chosen = 0; chosen < 1 << (units - 1); ++chosen) {
    auto& cuts = all.emplace_back();
    for (int cut = 1; cut < units; ++cut)
      if (chosen >> (cut - 1) & 1) cuts.push_back(cut);
  }
  return all;
}

}  // namespace

TEST_CASE("cuts, split backward passes, recomputation and threads change no bit", "[models]") {
  for (const Model& model : small_models()) {
    const Pipeline::Recipe recipe{.model = model, .optimizer = adamw(), .groups = 3};
    const auto wanted = after_training(recipe, {});
    for (const auto& cuts : all_cuts(static_cast<int>(model.units.size())))
      for (const auto backward : {Way::Backward::whole, Way::Backward::in_halves})
        for (const auto keep : {Keep::everything, Keep::input}) {
          CAPTURE(model.kind, cuts, static_cast<int>(backward), static_cast<int>(keep));
          const auto found = after_training(
              recipe, {.cuts = cuts, .backward = backward, .keep = keep, .threads = 1});
          CHECK(to_string(found) == to_string(wanted));
        }
    for (const int threads : {2, 3}) {
      CAPTURE(model.kind, threads);
      CHECK(to_string(after_training(recipe, {.cuts = {1}, .threads = threads})) ==
            to_string(wanted));
    }
  }
}

TEST_CASE("cuts, split backward passes and recomputation change no bit in bf16", "[models]") {
  for (const Model& model : small_models()) {
    const Pipeline::Recipe recipe{
        .model = model, .optimizer = adamw(), .precision = kernels::Precision::bf16_pairs};
    const auto wanted = to_string(after_training(recipe, {}));
    CAPTURE(model.kind);
    CHECK(to_string(after_training(recipe, {.cuts = {2}, .threads = 2})) == wanted);
    CHECK(to_string(after_training(
              recipe, {.cuts = {1}, .backward = Way::Backward::in_halves, .keep = Keep::input})) ==
          wanted);
    // On cores convolutions are in fp32, and a segmenter has nothing else.
    if (model.kind == "segmenter") continue;
    Pipeline::Recipe other = recipe;
    other.precision = kernels::Precision::fp32;
    CHECK(to_string(after_training(other, {})) != wanted);
  }
}

TEST_CASE("stages that begin within layers change no bit", "[models]") {
  const auto models = small_models(), finer = small_models(Cuts::sublayers);
  int more = 0;  // Places for cuts that layers do not have.
  for (std::size_t i = 0; i < models.size(); ++i) {
    const auto units = static_cast<int>(finer[i].units.size());
    more += units - static_cast<int>(models[i].units.size());
    for (const auto precision : {kernels::Precision::fp32, kernels::Precision::bf16_pairs}) {
      const auto train = [&](const Model& model, const Way& way) {
        return to_string(
            after_training({.model = model, .optimizer = adamw(), .precision = precision}, way));
      };
      const auto wanted = train(models[i], {});
      CAPTURE(finer[i].kind, static_cast<int>(precision));
      CHECK(train(finer[i], {}) == wanted);
      for (int cut = 1; cut < units; ++cut) {
        CAPTURE(cut);
        CHECK(train(finer[i], {.cuts = {cut}}) == wanted);
        CHECK(train(finer[i],
                    {.cuts = {cut}, .backward = Way::Backward::in_halves, .keep = Keep::input}) ==
              wanted);
      }
    }
  }
  CHECK(more > 40);
}

TEST_CASE("the number of groups changes bits, but a cut changes none", "[models]") {
  const auto models = small_models();
  const Model& model = models[1];
  std::map<int, std::string> digests;
  for (const int groups : {1, 2, 4, 8}) {
    const Pipeline::Recipe recipe{
        .model = model, .optimizer = adamw(), .micro_batches = 8, .groups = groups};
    CAPTURE(groups);
    digests[groups] = to_string(after_training(recipe, {}));
    CHECK(to_string(after_training(recipe, {.cuts = {1, 2}})) == digests[groups]);
  }
  // Groups of one or two micro-batches may give the same sums, since a tree adds up the groups.
  CHECK(digests[1] != digests[2]);
  CHECK(digests[1] != digests[4]);
  CHECK(digests[2] != digests[4]);
}

TEST_CASE("a cut changes no bit with any optimizer", "[models]") {
  using Kind = OptimizerConfig::Kind;
  const auto models = small_models();
  for (const auto kind : {Kind::sgd, Kind::adam, Kind::adamw, Kind::nadamw, Kind::muon}) {
    auto config = OptimizerConfig::of(kind);
    config.clip_norm = 0.5;
    const Pipeline::Recipe recipe{.model = models[1], .optimizer = config};
    CAPTURE(static_cast<int>(kind));
    CHECK(to_string(after_training(recipe, {.cuts = {1, 2}, .threads = 2})) ==
          to_string(after_training(recipe, {})));
  }
}

TEST_CASE("training allocates no memory after its first steps", "[models]") {
  for (const Model& model : small_models()) {
    MemoryPool data_memory;
    Stream data_stream(data_memory);
    Pipeline pipeline({.model = model, .optimizer = adamw(), .groups = 2}, {.cuts = {1}});
    pipeline.start(3);
    for (std::uint64_t step = 0; step < 3; ++step)
      pipeline.step(made_batch(data_stream, model, samples, step));
    const auto allocations = pipeline.memory().counters().allocations;
    const auto held = pipeline.memory().counters().bytes_in_use;
    for (std::uint64_t step = 3; step < 8; ++step)
      pipeline.step(made_batch(data_stream, model, samples, step));
    CAPTURE(model.kind);
    CHECK(pipeline.memory().counters().allocations == allocations);
    CHECK(pipeline.memory().counters().bytes_in_use == held);
  }
}

TEST_CASE("keeping only the input needs less than half of the peak memory", "[models]") {
  const auto models = small_models();
  const auto peak = [&](Keep keep) {
    MemoryPool data_memory;
    Stream data_stream(data_memory);
    Pipeline pipeline({.model = models[1], .optimizer = adamw(), .micro_batches = 8},
                      {.cuts = {}, .keep = keep});
    pipeline.start(3);
    pipeline.step(made_batch(data_stream, models[1], 32, 0));
    return pipeline.memory().counters().peak_in_use;
  };
  CHECK(peak(Keep::input) < peak(Keep::everything) / 2);
}

TEST_CASE("a stage counts micro-batches in flight and the first stage returns no gradient",
          "[models]") {
  MemoryPool memory;
  Stream stream(memory);
  const auto models = small_models();
  const Model& mlp = models[0];
  Stage stage(mlp, {0, 4}, {});
  Optimizer optimizer(adamw(), stage.parameters(), stage.buffers(), kernels::Precision::fp32);
  const auto weights = optimizer.initial(stream, 1);
  const Batch batch = made_batch(stream, mlp, 2, 0);
  stage.begin_step(Share::whole(2, 1), 4);
  CHECK(stage.is_last());
  CHECK(stage.in_flight() == 0);
  for (const int m : {0, 1})
    stage.forward(stream, {.step = 0, .index = m, .first_sample = 2 * m}, *weights, batch.input,
                  batch.target);
  CHECK(stage.in_flight() == 2);
  CHECK(stage.backward(stream, 0, *weights, {}).empty());
  CHECK(stage.in_flight() == 1);
  CHECK(stage.backward_input(stream, 1, *weights, {}).empty());
  CHECK(stage.in_flight() == 1);
  stage.backward_weight(stream, 1, *weights);
  CHECK(stage.in_flight() == 0);
  const auto gradients = join(stream, {stage.take_gradients()});
  CHECK(gradients.slots.size() == 8);
  CHECK(gradients.statistics.size() == 2);
}

TEST_CASE("a step may end while micro-batches of the next step are in flight", "[models]") {
  MemoryPool memory;
  Stream stream(memory);
  const auto models = small_models();
  const Model& mlp = models[0];
  const auto gradient_of_second = [&](auto between) {
    Stage stage(mlp, {0, 4}, {});
    Optimizer optimizer(adamw(), stage.parameters(), {}, kernels::Precision::fp32);
    const auto weights = optimizer.initial(stream, 1);
    const Batch batch = made_batch(stream, mlp, 2, 0);
    const auto forward = [&](int m) {
      stage.forward(stream, {.step = m, .index = m}, *weights, batch.input, batch.target);
    };
    between(stage, forward, *weights);
    const Tensor gradient = join(stream, {stage.take_gradients()}).slots[0];
    return std::vector<float>(gradient.f32(), gradient.f32() + gradient.count());
  };
  const auto one_by_one = gradient_of_second([&](Stage& stage, auto forward, const auto& weights) {
    stage.begin_step(Share::whole(1, 1), 2);
    forward(1);
    stage.backward(stream, 1, weights, {});
  });
  const auto overlapping = gradient_of_second([&](Stage& stage, auto forward, const auto& weights) {
    stage.begin_step(Share::whole(1, 1), 2);
    forward(0);
    forward(1);
    stage.backward(stream, 0, weights, {});
    (void)stage.take_gradients();
    stage.begin_step(Share::whole(1, 1), 2);
    stage.backward(stream, 1, weights, {});
  });
  CHECK(one_by_one == overlapping);
}

TEST_CASE("evaluation returns logits without targets and losses with targets", "[models]") {
  for (const Model& model : small_models()) {
    MemoryPool memory;
    Stream stream(memory);
    const auto units = static_cast<int>(model.units.size());
    const Stage whole(model, {0, units}, {}), front(model, {0, 1}, {}), back(model, {1, units}, {});
    const auto weights_of = [&](const Stage& stage) {
      const Optimizer optimizer({}, stage.parameters(), stage.buffers(), kernels::Precision::fp32);
      return optimizer.initial(stream, 1);
    };
    const Batch batch = made_batch(stream, model, 2, 0);
    const auto weights = weights_of(whole);
    const Tensor logits = whole.evaluate(stream, *weights, batch.inputs()).stream;
    const Tensor losses = whole.evaluate(stream, *weights, batch.inputs(), batch.target).stream;
    CAPTURE(model.kind);
    REQUIRE(losses.shape() == Shape{batch.target.count()});
    if (model.sample.target_type == DType::f32) {
      REQUIRE(logits.shape() == batch.target.shape());
      for (std::int64_t i = 0; i < losses.count(); ++i)
        if (std::isnan(batch.target.f32()[i])) CHECK(losses.f32()[i] == 0);
    } else {
      REQUIRE(logits.shape().last() == model.classes);
      double sum = 0;
      for (std::int64_t c = 0; c < model.classes; ++c)
        sum += std::exp(static_cast<double>(logits.f32()[c]));
      const float chosen = logits.f32()[batch.target.data<std::int32_t>()[0]];
      CHECK(losses.f32()[0] == Approx(std::log(sum) - chosen).epsilon(1e-5));
    }

    const Bundle between = front.evaluate(stream, *weights_of(front), batch.inputs());
    const Tensor cut = back.evaluate(stream, *weights_of(back), between, batch.target).stream;
    CHECK(std::equal(cut.f32(), cut.f32() + cut.count(), losses.f32()));
  }
}

TEST_CASE("evaluation draws no dropout", "[models]") {
  const auto models = small_models(), plain_models = small_models_without_dropout();
  for (std::size_t i = 0; i < models.size(); ++i) {
    CAPTURE(models[i].kind);
    MemoryPool memory;
    Stream stream(memory);
    const Batch batch = made_batch(stream, models[i], 8, 0);
    const auto of = [&](const Model& model, auto pass) {
      Stage stage(model, {0, static_cast<int>(model.units.size())}, {});
      const Optimizer optimizer({}, stage.parameters(), stage.buffers(), kernels::Precision::fp32);
      const auto weights = optimizer.initial(stream, 1);
      const Tensor made = pass(stage, *weights);
      return std::vector<float>(made.f32(), made.f32() + made.count());
    };
    const auto trained = [&](Stage& stage, const Weights& weights) {
      stage.begin_step(Share::whole(1, 1), batch.target.count());
      return stage.forward(stream, {}, weights, batch.inputs(), batch.target).stream;
    };
    const auto evaluated = [&](Stage& stage, const Weights& weights) {
      return stage.evaluate(stream, weights, batch.inputs(), batch.target).stream;
    };
    CHECK(of(models[i], trained) != of(plain_models[i], trained));
    CHECK(of(models[i], evaluated) == of(plain_models[i], evaluated));
  }
}

TEST_CASE("evaluation keeps no memory", "[models]") {
  for (const Model& model : small_models()) {
    CAPTURE(model.kind);
    MemoryPool memory;
    Stream stream(memory);
    const auto units = static_cast<int>(model.units.size());
    for (const auto keep : {Keep::everything, Keep::input}) {
      const Stage stage(model, {0, units}, {.keep = keep});
      const Optimizer optimizer({}, stage.parameters(), stage.buffers(), kernels::Precision::fp32);
      const auto weights = optimizer.initial(stream, 1);
      const Batch batch = made_batch(stream, model, 2, 0);
      const auto held = memory.counters().bytes_in_use;
      {
        const Tensor losses = stage.evaluate(stream, *weights, batch.inputs(), batch.target).stream;
        CHECK(memory.counters().bytes_in_use == held + MemoryPool::size_of_block(losses.bytes()));
      }
      (void)stage.evaluate(stream, *weights, batch.inputs());
      CHECK(memory.counters().bytes_in_use == held);
      CHECK(stage.in_flight() == 0);
    }
  }
}

TEST_CASE("losses are summed in double", "[models]") {
  MemoryPool memory;
  Stream stream(memory);
  Losses losses{stream.make({3})};
  losses.each.f32()[0] = 16777216;
  losses.each.f32()[1] = 1;
  losses.each.f32()[2] = 1;
  CHECK(losses.sum() == 16777218);
  CHECK(losses.mean(3) == 5592406);
}
