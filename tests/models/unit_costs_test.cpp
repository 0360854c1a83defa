// Checks that the costs reported for a unit match the memory of a stage.

#include "models/train/unit_costs.h"

#include <cstring>

#include "catch.h"
#include "training.h"

using namespace troupe;
using namespace troupe::models;

namespace {

constexpr std::int64_t micro = 4;
constexpr std::int64_t scratch = 1 << 20;  // Temporary memory within kernels.

Tensor copy(Stream& stream, const Tensor& tensor) {
  Tensor made = stream.make(tensor.shape(), tensor.dtype());
  std::memcpy(made.raw(), tensor.raw(), tensor.bytes());
  return made;
}

Bundle copy(Stream& stream, const Bundle& bundle) {
  Bundle made = copy(stream, bundle.stream);
  for (const auto& kept : bundle.kept) made.kept.push_back(copy(stream, kept));
  return made;
}

std::int64_t bytes_of_all(const Bundle& bundle) {
  auto bytes = static_cast<std::int64_t>(bundle.stream.empty() ? 0 : bundle.stream.bytes());
  for (const auto& kept : bundle.kept) bytes += static_cast<std::int64_t>(kept.bytes());
  return bytes;
}

/// Returns what the stage that begins with this unit sends back, given what it received.
Bundle gradient_of(Stream& stream, const Model& model, int unit, const Bundle& received) {
  if (unit == static_cast<int>(model.units.size())) return {};
  Bundle made = copy(stream, received.stream);
  const auto kept = kept_across(model, unit);
  for (std::size_t i = 0; i < kept.size(); ++i)
    if (model.kept[static_cast<std::size_t>(kept[i])].has_gradient)
      made.kept.push_back(copy(stream, received.kept[i]));
  return made;
}

Shape of_a_sample(const Tensor& batch) {
  Shape shape;
  for (int i = 1; i < batch.shape().rank(); ++i) shape.append(batch.shape()[i]);
  return shape;
}

std::int64_t held(const MemoryPool& memory) {
  return static_cast<std::int64_t>(memory.counters().bytes_in_use);
}

template <class Get>
std::int64_t sum(const std::vector<UnitCosts>& units, Get get) {
  std::int64_t total = 0;
  for (const auto& unit : units) total += get(unit);
  return total;
}

/// A model, the costs of its units, and memory in which the same work really runs.
struct Bench {
  Bench(const Model& which, kernels::Precision in, const OptimizerConfig& by,
        const StalenessOptions& late = {})
      : model(which), precision(in), optimizer_config(by), staleness(late) {
    const Batch batch = made_batch(stream, model, micro, 1);
    auto found = unit_costs(model, {.micro = micro,
                                    .input = of_a_sample(batch.input),
                                    .target = of_a_sample(batch.target),
                                    .precision = precision,
                                    .optimizer = optimizer_config,
                                    .staleness = staleness});
    REQUIRE(found);
    units = std::move(*found);
  }

  Stage stage(int first, int last) const {
    return {model, {first, last}, {.precision = precision}};
  }
  Optimizer optimizer(const Stage& stage) const {
    return {optimizer_config,
            stage.parameters(),
            stage.buffers(),
            precision,
            {.staleness = staleness, .delay = 0, .borrowed = {}}};
  }
  int count() const { return static_cast<int>(units.size()); }

  const Model& model;
  kernels::Precision precision;
  OptimizerConfig optimizer_config;
  StalenessOptions staleness;
  std::vector<UnitCosts> units;
  MemoryPool memory;
  Stream stream{memory};
};

template <class Check>
void for_all_models(Check check) {
  using Kind = OptimizerConfig::Kind;
  StalenessOptions penalised;  // Has a spread and a last move in addition to the rule's moments.
  penalised.gap_penalty = StalenessOptions::GapPenalty::elementwise;
  penalised.gap_source = StalenessOptions::GapSource::last_update;
  for (const auto precision : {kernels::Precision::fp32, kernels::Precision::bf16_blocks})
    for (const auto& [kind, staleness] :
         {std::pair(Kind::adamw, StalenessOptions()), std::pair(Kind::muon, StalenessOptions()),
          std::pair(Kind::adamw, penalised)}) {
      const auto models = small_models();
      for (const auto& model : models) {
        CAPTURE(model.kind, static_cast<int>(precision), static_cast<int>(kind),
                static_cast<int>(staleness.gap_penalty));
        Bench bench(model, precision, OptimizerConfig::of(kind), staleness);
        check(bench);
      }
    }
}

}  // namespace

TEST_CASE("the summed costs of all units equal the memory that one stage holds", "[models]") {
  for_all_models([](Bench& bench) {
    Stage stage = bench.stage(0, bench.count());
    Optimizer optimizer = bench.optimizer(stage);
    auto weights = optimizer.initial(bench.stream, 1);
    const auto weight = sum(bench.units, [](const UnitCosts& unit) { return unit.held.weight; });
    CHECK(held(bench.memory) == weight);

    Batch batch = made_batch(bench.stream, bench.model, micro, 1);
    stage.begin_step(Share::whole(1, 1), batch.target.count());
    Bundle inputs = batch.inputs();
    batch.input = {};
    batch.more.clear();
    Bundle losses = stage.forward(bench.stream, {}, *weights, std::move(inputs),
                                  std::exchange(batch.target, {}));
    CHECK(held(bench.memory) - weight ==
          sum(bench.units, [](const UnitCosts& unit) { return unit.stash - unit.stash_shared; }));

    stage.backward(bench.stream, 0, *weights, {});
    losses = {};
    CHECK(held(bench.memory) - weight == sum(bench.units, [](const UnitCosts& unit) {
            return unit.held.gradient + unit.statistics;
          }));

    weights =
        optimizer.step(bench.stream, weights, join(bench.stream, {stage.take_gradients()}), 1);
    CHECK(held(bench.memory) - weight ==
          sum(bench.units, [](const UnitCosts& unit) { return unit.held.optimizer; }));
  });
}

TEST_CASE("the costs of a unit equal what a stage of that unit holds after each pass", "[models]") {
  for_all_models([](Bench& bench) {
    const Batch batch = made_batch(bench.stream, bench.model, micro, 1);
    Bundle last_output = batch.inputs();
    for (int u = 0; u < bench.count(); ++u) {
      const UnitCosts& unit = bench.units[static_cast<std::size_t>(u)];
      CAPTURE(unit.name);
      Stage stage = bench.stage(u, u + 1);
      const auto weights = bench.optimizer(stage).initial(bench.stream, 1);
      MemoryPool memory;
      Stream stream(memory);
      stage.begin_step(Share::whole(1, 1), 1);
      Bundle x = copy(stream, last_output);
      CHECK(unit.stash_input == held(memory));
      CHECK(unit.boundary == bytes_of_all(x));
      Bundle y = stage.forward(stream, {}, *weights, std::move(x),
                               stage.is_last() ? copy(stream, batch.target) : Tensor());
      last_output = copy(bench.stream, y);
      if (!stage.is_last()) y = {};
      // A stage that begins between two units that save a kept value may itself save nothing.
      CHECK(held(memory) <= unit.stash);
      CHECK((held(memory) == unit.stash || (bench.model.kind == "braid" && unit.name == "b1")));

      Bundle dy = gradient_of(stream, bench.model, u + 1, last_output);
      dy = stage.backward_input(stream, 0, *weights, std::move(dy));
      CHECK(unit.boundary_back == bytes_of_all(dy));
      dy = {};
      const std::int64_t between = unit.stash_weight + unit.stash_weight_shared;
      CHECK(held(memory) <= between);
      CHECK((held(memory) == between || (bench.model.kind == "braid" && unit.name == "b1")));
      stage.backward_weight(stream, 0, *weights);
      const auto peak = static_cast<std::int64_t>(memory.counters().peak_in_use);
      CHECK(peak <= unit.stash + unit.workspace + unit.held.gradient + scratch);
      stage.take_gradients();
    }
  });
}

TEST_CASE("stages of an encoder and a decoder hold what their units say, wherever they are cut",
          "[models]") {
  Value options;
  for (const auto& [key, number] : {std::pair{"vocab", 50},
                                    {"source", 96},
                                    {"target", 24},
                                    {"width", 32},
                                    {"layers", 3},
                                    {"heads", 4},
                                    {"head_width", 8},
                                    {"ffn", 64}})
    options.set(key, number);
  const Model t5 = build("t5", options);
  const Bench bench(t5, kernels::Precision::fp32, {});
  Stream& stream = const_cast<Stream&>(bench.stream);
  const Batch batch = made_batch(stream, t5, micro, 1);
  for (int first = 0; first < bench.count(); ++first) {
    Bundle received = batch.inputs();
    if (first > 0) {
      Stage before = bench.stage(0, first);
      const auto weights = bench.optimizer(before).initial(stream, 1);
      before.begin_step(Share::whole(1, 1), 1);
      received = before.forward(stream, {}, *weights, batch.inputs());
    }
    for (int last = first + 1; last <= bench.count(); ++last) {
      CAPTURE(first, last);
      std::int64_t stash = 0, between = 0;
      for (int u = first; u < last; ++u) {
        const UnitCosts& unit = bench.units[static_cast<std::size_t>(u)];
        stash += unit.stash - (u > first ? unit.stash_shared : 0);
        between += unit.stash_weight + (u > first ? 0 : unit.stash_weight_shared);
      }
      Stage stage = bench.stage(first, last);
      const auto weights = bench.optimizer(stage).initial(stream, 1);
      MemoryPool memory;
      Stream own(memory);
      stage.begin_step(Share::whole(1, 1), 1);
      Bundle y = stage.forward(own, {}, *weights, copy(own, received),
                               stage.is_last() ? copy(own, batch.target) : Tensor());
      const Bundle given = copy(stream, y);
      if (!stage.is_last()) y = {};
      CHECK(static_cast<double>(held(memory)) == Approx(static_cast<double>(stash)).epsilon(0.05));
      CHECK(held(memory) <= stash);
      stage.backward_input(own, 0, *weights, gradient_of(own, t5, last, given));
      y = {};
      CHECK(static_cast<double>(held(memory)) ==
            Approx(static_cast<double>(between)).epsilon(0.05));
      stage.backward_weight(own, 0, *weights);
      stage.take_gradients();
    }
  }
}

TEST_CASE("a tied parameter counts for the first unit that has it", "[models]") {
  const auto gpt = [](bool tied) {
    Value options;
    for (const auto& [key, number] :
         {std::pair{"vocab", 32}, {"context", 8}, {"width", 16}, {"layers", 2}, {"heads", 2}})
      options.set(key, number);
    options.set("tied", tied);
    return build("gpt2", options);
  };
  const Model tied = gpt(true), apart = gpt(false);
  const Bench bench(tied, kernels::Precision::fp32, {});
  const Bench other(apart, kernels::Precision::fp32, {});
  const std::int64_t bytes = 32 * 16 * 4;  // wte.weight, which is also the head's matrix.
  CHECK(bench.units[0].ties.at(0).name == "wte.weight");
  CHECK(bench.units[1].ties.at(0).name == "wte.weight");
  CHECK(other.units[1].ties.empty());
  CHECK(other.units[1].held.weight - bench.units[1].held.weight == bytes);
  CHECK(other.units[1].held.optimizer - bench.units[1].held.optimizer == 2 * bytes);
  CHECK(other.units[1].held.gradient == bench.units[1].held.gradient);
  CHECK(other.units[1].parameters - bench.units[1].parameters == 32 * 16);
  CHECK(bench.units[1].ties.at(0).bytes.weight == bytes);
  CHECK(bench.units[1].ties.at(0).bytes.optimizer == 2 * bytes);
}

TEST_CASE("a linear layer counts the operations and bytes of its products", "[models]") {
  Value options;
  options.set("dims", Value::List{6, 8, 5});
  const Model model = build("mlp", options);
  const Bench bench(model, kernels::Precision::fp32, {});
  const Work& work = bench.units[0].work;
  CHECK(work.forward[0].kernel == "linear_forward");
  CHECK(work.forward[0].operations == 2 * 4 * 6 * 8);
  CHECK(work.backward_input[0].operations == 2 * 4 * 6 * 8);
  CHECK(work.backward_weight[0].operations == 2 * 4 * 6 * 8);
  CHECK(work.forward[0].bytes == 4 * (4 * 6 + 6 * 8 + 4 * 8));
}

TEST_CASE("causal attention counts half of the operations of full attention", "[models]") {
  const kernels::AttentionShape full{
      .batch = 2, .length = 10, .heads = 3, .kv_heads = 3, .width = 4, .mask = kernels::Mask::full};
  auto causal = full;
  causal.mask = kernels::Mask::causal;
  // Two products of 10 x 10 x 4 for each of 2 x 3 heads.
  CHECK(attention_work(full).forward[0].operations == 2 * 2 * 10 * 10 * 4 * 6);
  CHECK(attention_work(causal).forward[0].operations == 10 * 10 * 4 * 2 * 6);
}

TEST_CASE("unit costs of a huge model need no memory and overflowing sizes are refused",
          "[models]") {
  [[maybe_unused]] const auto costs = [](std::int64_t width) {
    Value options;
    options.set("dims", Value::List{width, width, 4});
    const Model model = build("mlp", options);
    return unit_costs(model, {.micro = 8, .input = {width}, .target = {}});
  };
#ifndef __SANITIZE_THREAD__  // ThreadSanitizer leaves no room for 4 TiB of addresses.
  const auto large = costs(1 << 20);
  REQUIRE(large);
  CHECK(large->front().parameters == (std::int64_t{1} << 40) + (1 << 20));
  CHECK(large->front().held.gradient == (std::int64_t{4} << 40) + (4 << 20));
#endif
  const Model model = [] {
    Value options;
    options.set("dims", Value::List{4, 4});
    return build("mlp", options);
  }();
  const auto absurd =
      unit_costs(model, {.micro = std::int64_t{1} << 50, .input = {4}, .target = {}});
  REQUIRE_FALSE(absurd);
  CHECK(absurd.error().text.starts_with("the parameter layers.0.weight [4, 4] with micro-batches"));
}

TEST_CASE("a unit before which nothing is trained returns no gradient", "[models]") {
  Value options;
  options.set("dims", Value::List{4, 4, 4, 4});
  Model model = build("mlp", options);
  const auto returned = [&] {
    const auto costs = unit_costs(model, {.micro = micro, .input = {4}, .target = {}});
    REQUIRE(costs);
    std::vector<bool> returns;
    for (const auto& unit : *costs) returns.push_back(unit.boundary_back > 0);
    return returns;
  };
  CHECK(returned() == std::vector<bool>{false, true, true});
  for (const auto& parameter : model.units[0].layer->parameters())
    model.frozen.insert(parameter.name);
  CHECK(returned() == std::vector<bool>{false, false, true});
}

TEST_CASE("a GPU holds a second copy of each matrix, rounded for tensor cores", "[models]") {
  Value options;
  options.set("dims", Value::List{64, 64});
  const Model model = build("mlp", options);
  const auto weight = [&](kernels::Precision precision) {
    const auto costs = unit_costs(model, {.micro = micro,
                                          .input = {64},
                                          .target = {},
                                          .precision = precision,
                                          .computer = Computer::gpu});
    REQUIRE(costs);
    return costs->front().held.weight;
  };
  constexpr std::int64_t numbers = 64 * 64, bias = 64 * 4;
  CHECK(weight(kernels::Precision::fp32) == numbers * (4 + 4) + bias);
  CHECK(weight(kernels::Precision::bf16_gpu) == numbers * (4 + 2) + bias);
}

TEST_CASE("unit costs on tensor cores count 16-bit activations and attention's workspace",
          "[models]") {
  constexpr std::int64_t length = 450, in_whole_tiles = 512, heads = 2;
  Value options;
  for (const auto& [name, value] :
       {std::pair{"vocab", 32}, {"context", 512}, {"width", 16}, {"layers", 3}, {"heads", 2}})
    options.set(name, value);
  const Model gpt = build("gpt2", options);
  const auto block = [&](kernels::Precision precision) {
    const auto costs = unit_costs(
        gpt, {.micro = micro, .input = {length}, .target = {length}, .precision = precision});
    REQUIRE(costs);
    return (*costs)[1];
  };
  const auto wide = block(kernels::Precision::fp32), narrow = block(kernels::Precision::bf16_gpu);
  // Per number of the width: 36 bytes instead of 64, of which 4 belong to the previous unit.
  CHECK(narrow.stash < 0.6 * static_cast<double>(wide.stash));
  constexpr std::int64_t room = micro * heads * in_whole_tiles * in_whole_tiles * 2;
  CHECK(narrow.workspace >= room);
  CHECK(narrow.workspace < room + narrow.stash);
  CHECK(wide.workspace < room);
}
