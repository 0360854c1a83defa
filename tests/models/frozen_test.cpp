#include <algorithm>
#include <cstring>
#include <map>

#include "async_pipes.h"
#include "catch.h"
#include "models/train/parameter_groups.h"
#include "training.h"

using namespace troupe;
using namespace troupe::models;

namespace {

using S = StalenessOptions;
using Kind = OptimizerConfig::Kind;

/// Freezes the parameters whose place in the model's list passes the test.
template <class Test>
void freeze_if(Model& model, Test test) {
  const auto names = parameter_names(model);
  for (std::size_t i = 0; i < names.size(); ++i)
    if (test(i, names.size())) model.frozen.insert(names[i]);
}

/// Returns small models, each with several sets of frozen parameters.
std::vector<Model> frozen_models() {
  std::vector<Model> all;
  const auto add = [&](auto test) {
    for (auto& model : small_models()) {
      freeze_if(model, test);
      if (!model.frozen.empty()) all.push_back(std::move(model));
    }
  };
  add([](std::size_t i, std::size_t) { return i % 2 == 0; });
  add([](std::size_t i, std::size_t count) { return i < count / 2; });
  add([](std::size_t i, std::size_t count) { return i + 1 < count; });
  add([](std::size_t i, std::size_t) { return i > 0; });
  return all;
}

std::map<std::string, std::vector<float>> weights_after(const Model& model, int steps,
                                                        const OptimizerConfig& config) {
  Pipeline pipeline({.model = model, .optimizer = config}, {});
  pipeline.start(1);
  for (int step = 0; step < steps; ++step)
    pipeline.step(made_batch(pipeline.stream(), model, 8, static_cast<std::uint64_t>(step)));
  std::map<std::string, std::vector<float>> numbers;
  for (const auto& [name, tensor] : pipeline.weights()) {
    const auto all = tensor.numbers<float>();
    numbers[name].assign(all.begin(), all.end());
  }
  return numbers;
}

}  // namespace

TEST_CASE("frozen parameters stay, and the others step as if all were trained", "[models]") {
  auto config = OptimizerConfig::of(Kind::adamw);
  config.weight_decay = 0.1;
  for (auto& model : frozen_models()) {
    const auto first = weights_after(model, 0, config), frozen = weights_after(model, 1, config);
    const auto frozen_names = std::exchange(model.frozen, {});
    const auto all = weights_after(model, 1, config);
    for (const auto& name : parameter_names(model)) {
      CAPTURE(model.kind, name);
      CHECK(frozen.at(name) == (frozen_names.contains(name) ? first : all).at(name));
    }
  }
}

TEST_CASE("neither cuts nor halves nor recomputation change a bit beside frozen parameters",
          "[models]") {
  for (const auto& model : frozen_models())
    for (const Kind kind : {Kind::adamw, Kind::muon}) {
      auto config = OptimizerConfig::of(kind);
      config.clip_norm = 0.5;
      CAPTURE(model.kind, model.frozen.size());
      const auto digest_of = [&](const Way& way) {
        Pipeline pipeline({.model = model, .optimizer = config, .groups = 2}, way);
        pipeline.start(1);
        for (std::uint64_t step = 0; step < 3; ++step)
          pipeline.step(made_batch(pipeline.stream(), model, 8, step));
        return pipeline.digest();
      };
      const auto whole = digest_of({});
      const int units = static_cast<int>(model.units.size());
      for (int cut = 1; cut < units; ++cut) {
        CHECK(digest_of({.cuts = {cut}}) == whole);
        CHECK(digest_of({.cuts = {cut},
                         .backward = Way::Backward::in_halves,
                         .keep = Keep::input,
                         .short_rows = 0,
                         .threads = 2}) == whole);
      }
    }
}

TEST_CASE("a stage gives a gradient only if something before it is trained", "[models]") {
  auto model = build("mlp", Value(Value::Map{{"dims", Value::List{3, 4, 4, 2}, {}}}));
  REQUIRE(model.units.size() == 3);
  const auto gives = [&](int first) {
    return Stage(model, {first, first + 1}, {}).gives_gradient();
  };
  CHECK_FALSE(gives(0));
  CHECK(gives(1));
  const auto names = parameter_names(model);
  model.frozen = {names[0]};
  CHECK(gives(1));
  model.frozen = {names[0], names[1]};
  CHECK_FALSE(gives(1));
  CHECK(gives(2));
}

TEST_CASE("a frozen stage adds no gradient, moment or square", "[models]") {
  auto model = build("mlp", Value(Value::Map{{"dims", Value::List{3, 4, 2}, {}}}));
  const auto names = parameter_names(model);
  model.frozen = {names[0], names[1], names[3]};
  MemoryPool memory;
  Stream stream(memory);
  Stage stage(model, {0, 2}, {});
  Optimizer optimizer(OptimizerConfig::of(Kind::adamw), stage.parameters(), {},
                      kernels::Precision::fp32);
  auto weights = optimizer.initial(stream, 1);
  const auto batch = made_batch(stream, model, 4, 1);
  stage.begin_step(Share::whole(1, 1), 4);
  stage.forward(stream, {}, *weights, batch.input, batch.target);
  stage.backward(stream, 0, *weights, {});
  auto gradients = join(stream, {stage.take_gradients()});
  CHECK(gradients.slots[0].empty());
  CHECK(gradients.slots[1].empty());
  CHECK_FALSE(gradients.slots[2].empty());
  CHECK(gradients.slots[3].empty());
  const auto squares = optimizer.squared_norms(stream, gradients);
  REQUIRE(squares.size() == 1);
  CHECK(squares[0].name == names[2]);
  const auto next = optimizer.step(stream, weights, std::move(gradients), global_norm(squares));
  CHECK(next->slots[0].value.raw() == weights->slots[0].value.raw());
  CHECK(optimizer.moments().size() == 1);
  CHECK(optimizer.state().size() == 2);
  CHECK(optimizer.named(*next).size() == 4);
}

// A rate of 0 leaves weights as they are, but only groups in tests can have one.
TEST_CASE("late gradients beside frozen weights are those beside weights without a step",
          "[models]") {
  for (auto staleness : policies()) {
    if (measures_gaps(staleness) || staleness.delay_compensation > 0) continue;
    for (const bool tied : {false, true}) {
      auto still = pipe(8, 2);
      if (tied) still.weights = {{0.9, 1.1}, {1.2}, {0.9, 0.8}};
      still.tied = tied;
      still.staleness = staleness;
      still.optimizer.groups = {{.match = {"s0.*"}, .lr = 0}};
      auto frozen = still;
      frozen.optimizer.groups.clear();
      frozen.frozen = {"s0.0", "s0.1"};
      const auto stood = run(still), stayed = run(frozen);
      CHECK(same(stood, stayed));
      CHECK(stayed.theta[0].front() == stayed.theta[0].back());
      CHECK(stayed.theta[1].front() != stayed.theta[1].back());
    }
  }
}

TEST_CASE("gaps are measured over the weights that are trained", "[models]") {
  for (auto staleness : policies()) {
    if (!mends_gradients(staleness)) continue;
    for (const auto source : {S::GapSource::stash, S::GapSource::last_update}) {
      staleness.gap_source = source;
      auto frozen = pipe(8, 2);
      frozen.staleness = staleness;
      frozen.frozen = {"s0.0", "s1.0"};
      const auto trace = run(frozen);
      CHECK(trace.theta[1].front() == trace.theta[1].back());
      CHECK(trace.theta[0].back()[0] == 0.9);
      CHECK(trace.theta[0].back()[1] != 1.1);
      CHECK(std::isfinite(trace.theta[2].back()[0]));
      frozen.is_measured = false;
      CHECK(same(run(frozen), trace));
    }
  }
}
