#include <cmath>

#include "async_pipes.h"
#include "catch.h"
#include "models/patterns.h"
#include "models/train/parameter_groups.h"
#include "training.h"

using namespace troupe;
using namespace troupe::models;

namespace {

using Kind = OptimizerConfig::Kind;

OptimizerConfig grouped(OptimizerConfig config) {
  config.groups = {{.match = {"*.bias", "*norm*", "*ln_*"}, .weight_decay = 0.0},
                   {.match = {"wte*", "0.weight"}, .lr = 0.25}};
  return config;
}

/// The numbers of AdamW in double, as PyTorch writes it.
struct AdamW {
  double w, lr, decay;
  double m = 0, v = 0;
  int t = 0;

  double step(double g) {
    ++t;
    w -= lr * decay * w;
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g * g;
    const double first = m / (1 - std::pow(0.9, t)), second = v / (1 - std::pow(0.999, t));
    return w -= lr * first / (std::sqrt(second) + 1e-8);
  }
};

}  // namespace

TEST_CASE("a pattern matches a whole name", "[models]") {
  CHECK(matches_pattern("*", ""));
  CHECK(matches_pattern("*.bias", "h.0.ln_1.bias"));
  CHECK_FALSE(matches_pattern("*.bias", "h.0.bias.weight"));
  CHECK_FALSE(matches_pattern("ln", "ln_f"));
  CHECK(matches_pattern("h.?.attn.*", "h.3.attn.c_attn.weight"));
  CHECK_FALSE(matches_pattern("h.?.attn.*", "h.13.attn.c_attn.weight"));
  CHECK(matches_pattern("*a*a*b", "aaaaab"));
  CHECK_FALSE(matches_pattern("*a*a*b", "aaaaaa"));
  CHECK(matches_pattern("a**", "a"));
}

TEST_CASE("the first group that matches takes a parameter", "[models]") {
  const std::vector<ParameterGroup> groups = {{.match = {"*.bias"}}, {.match = {"h.*", "wte*"}}};
  CHECK(group_of(groups, "h.0.bias") == 0u);
  CHECK(group_of(groups, "h.0.weight") == 1u);
  CHECK_FALSE(group_of(groups, "ln_f.weight"));
  const auto taken = taken_by(groups, {"wte", "h.0.bias", "ln_f.weight", "h.0.weight"});
  REQUIRE(taken.size() == 3);
  CHECK(taken[0] == std::vector<std::string>{"h.0.bias"});
  CHECK(taken[1] == std::vector<std::string>{"wte", "h.0.weight"});
  CHECK(taken[2] == std::vector<std::string>{"ln_f.weight"});
}

TEST_CASE("a group's parameters step with its decay and its share of the rate", "[models]") {
  auto config = OptimizerConfig::of(Kind::adamw);
  config.rate.lr = 0.1;
  config.weight_decay = 0.5;
  config.groups = {{.match = {"a"}, .weight_decay = 0.0, .lr = 3}, {.match = {"b"}, .lr = 0.2}};
  MemoryPool memory;
  Stream stream{memory};
  Optimizer optimizer(
      config,
      {{.name = "a", .shape = {1}}, {.name = "b", .shape = {1}}, {.name = "c", .shape = {1}}}, {},
      kernels::Precision::fp32);
  const auto number = [&](float value) {
    Tensor tensor = stream.make({1});
    tensor.f32()[0] = value;
    return tensor;
  };
  auto weights = optimizer.from(stream, {{"a", number(1)}, {"b", number(-2)}, {"c", number(3)}}, 0);
  REQUIRE(weights.ok());
  AdamW expected[] = {{.w = 1, .lr = 0.3, .decay = 0},
                      {.w = -2, .lr = 0.1 * 0.2, .decay = 0.5},
                      {.w = 3, .lr = 0.1, .decay = 0.5}};
  for (int step = 0; step < 8; ++step) {
    StageGradients gradients;
    for (std::size_t i = 0; i < 3; ++i) {
      const double g = std::sin(step + 3.0 * static_cast<double>(i));
      gradients.slots.push_back(number(static_cast<float>(g)));
      expected[i].step(g);
    }
    const double norm = global_norm(optimizer.squared_norms(stream, gradients));
    *weights = optimizer.step(stream, *weights, std::move(gradients), norm);
    for (std::size_t i = 0; i < 3; ++i)
      CHECK((*weights)->slots[i].value.f32()[0] == Approx(expected[i].w).epsilon(1e-5));
  }
}

// Powers of two, so that the factor changes no rounding.
TEST_CASE("a group of all parameters is the optimizer with its settings", "[models]") {
  for (const Kind kind : {Kind::sgd, Kind::adam, Kind::adamw})
    for (const auto& staleness : policies()) {
      auto plain = pipe(8, 2);
      plain.staleness = staleness;
      plain.optimizer.kind = kind;
      plain.optimizer.rate = {.kind = LearningRate::Kind::linear,
                              .lr = 0.0625,
                              .warmup_steps = 2,
                              .total_steps = 64,
                              .min_lr = 0.0078125};
      plain.optimizer.weight_decay = 0.25;
      auto grouped = plain;
      grouped.optimizer.weight_decay = 0.125;
      grouped.optimizer.rate.lr *= 4;
      grouped.optimizer.rate.min_lr *= 4;
      grouped.optimizer.groups = {{.match = {"s*"}, .weight_decay = 0.25, .lr = 0.25}};
      if (kind == Kind::sgd && staleness.spike_compensation) continue;
      CHECK(same(run(plain), run(grouped)));
    }
}

TEST_CASE("groups that change nothing change no bit", "[models]") {
  for (const Kind kind : {Kind::sgd, Kind::adamw})
    for (const auto& staleness : policies()) {
      auto plain = pipe(8, 2);
      plain.staleness = staleness;
      plain.optimizer.kind = kind;
      plain.optimizer.weight_decay = 0.25;
      auto grouped = plain;
      grouped.optimizer.groups = {{.match = {"s0.*"}, .weight_decay = 0.25}, {.match = {"*"}}};
      CHECK(same(run(plain), run(grouped)));
    }
}

TEST_CASE("no cut of a model changes a bit of training with groups", "[models]") {
  for (const auto& model : small_models())
    for (const Kind kind : {Kind::sgd, Kind::adamw, Kind::nadamw, Kind::muon}) {
      auto config = grouped(OptimizerConfig::of(kind));
      config.clip_norm = 0.5;
      config.weight_decay = 0.25;
      auto plain = config;
      plain.groups.clear();
      const auto digest_of = [&](const OptimizerConfig& optimizer, const Way& way) {
        Pipeline pipeline({.model = model, .optimizer = optimizer}, way);
        pipeline.start(1);
        for (std::uint64_t step = 0; step < 3; ++step)
          pipeline.step(made_batch(pipeline.stream(), model, 8, step));
        return pipeline.digest();
      };
      const auto whole = digest_of(config, {});
      Way cut{.cuts = {1}, .backward = Way::Backward::in_halves, .keep = Keep::input};
      CHECK(digest_of(config, cut) == whole);
      CHECK(digest_of(plain, {}) != whole);
    }
}
