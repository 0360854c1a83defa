// The kernels that a step calls on a GPU, by a rehearsal without one.

#include "models/train/step_calls.h"

#include <algorithm>
#include <string_view>

#include "catch.h"
#include "training.h"

using namespace troupe;
using namespace troupe::models;
using kernels::Precision;

namespace {

struct GptSizes {
  std::int64_t vocab, context, width, layers, heads;
};

Model gpt_of(const GptSizes& sizes) {
  Value options;
  options.set("vocab", sizes.vocab);
  options.set("context", sizes.context);
  options.set("width", sizes.width);
  options.set("layers", sizes.layers);
  options.set("heads", sizes.heads);
  return build("gpt2", options);
}

// The sizes of config/gpt-tiny.toml.
constexpr GptSizes tiny{.vocab = 512, .context = 64, .width = 128, .layers = 4, .heads = 4};
constexpr std::int64_t gpt_samples = 4, gpt_rows = 256;

CostRequest costs_of(const GptSizes& sizes, Precision precision) {
  return {.micro = gpt_samples,
          .input = {sizes.context},
          .target = {sizes.context},
          .precision = precision,
          .optimizer = OptimizerConfig::of(OptimizerConfig::Kind::adamw),
          .staleness = {},
          .computer = Computer::gpu};
}

StepRequest whole(const Model& model) {
  return {.units = {0, static_cast<int>(model.units.size())},
          .keep = Keep::everything,
          .micro_batches = 1,
          .groups = 1};
}

StepCalls calls_of(const Model& model, const StepRequest& step, const CostRequest& costs) {
  auto calls = step_calls(model, step, costs);
  REQUIRE(calls);
  return std::move(*calls);
}

KernelCalls found(const std::vector<KernelCalls>& list, std::string_view kernel,
                  const Shape& sizes) {
  const auto entry = std::ranges::find_if(list, [&](const KernelCalls& calls) {
    return calls.call.kernel == kernel && calls.call.sizes == sizes;
  });
  CAPTURE(std::string(kernel), to_string(sizes));
  REQUIRE(entry != list.end());
  return *entry;
}

double operations(const std::vector<KernelCalls>& list) {
  double sum = 0;
  for (const auto& [call, times] : list) sum += static_cast<double>(times) * call.operations;
  return sum;
}

std::int64_t times_of(const std::vector<KernelCalls>& list, std::string_view kernel) {
  std::int64_t sum = 0;
  for (const auto& [call, times] : list)
    if (call.kernel == kernel) sum += times;
  return sum;
}

}  // namespace

TEST_CASE("kernels of gpt-tiny in bf16 move the bytes that arithmetic gives", "[models]") {
  const Model model = gpt_of(tiny);
  const StepCalls calls = calls_of(model, whole(model), costs_of(tiny, Precision::bf16_gpu));

  // 256 x 128 numbers: read in fp32, written in bf16. Moments per row, weight and bias per column.
  const auto norm = found(calls.forward, "layer_norm_forward", {gpt_rows, 128});
  CHECK(norm.times == 4 + 1);
  CHECK(norm.call.bytes == gpt_rows * 128 * (4 + 2) + gpt_rows * 2 * 4 + 128 * 2 * 4);
  CHECK(norm.call.operations == 0);

  // 256 x 128 times 128 x 384, with a bias that was rounded before.
  const auto qkv = found(calls.forward, "multiply_and_round", {gpt_rows, 384, 128});
  CHECK(qkv.times == 4);
  CHECK(qkv.call.bytes == 2 * (gpt_rows * 128 + 128 * 384 + gpt_rows * 384 + 384));
  CHECK(qkv.call.operations == 2 * gpt_rows * 384 * 128);
  CHECK(qkv.call.factors == kernels::Factors::bits16);
  CHECK(found(calls.forward, "round", {384}).call.bytes == 384 * (4 + 2));

  // The product writes its sums and their gelu().
  const auto up = found(calls.forward, "multiply_to_gelu", {gpt_rows, 512, 128});
  CHECK(up.call.bytes == 2 * (gpt_rows * 128 + 128 * 512 + 2 * gpt_rows * 512 + 512));

  // Queries, keys, values and results, and a logarithm for each of 4 heads and 256 rows. Each of
  // two products has 64 / 2 keys of 128 numbers for each row.
  const auto attention = found(calls.forward, "attention_forward", {gpt_samples, 64, 4, 4, 32});
  CHECK(attention.times == 4);
  CHECK(attention.call.bytes == 4 * gpt_rows * 128 * 2 + gpt_rows * 4 * 4);
  CHECK(attention.call.operations == 2 * (2 * gpt_rows * 32 * 128));

  // The residual stream is in fp32. The second norm of a block adds the first branch to it.
  const auto second = found(calls.forward, "layer_norm_forward_of_sum", {gpt_rows, 128});
  CHECK(second.times == 4);
  CHECK(second.call.bytes == gpt_rows * 128 * (2 + 4 + 4 + 2) + gpt_rows * 2 * 4 + 128 * 2 * 4);
  const auto residual = found(calls.forward, "add", {gpt_rows * 128});
  CHECK(residual.times == 4);
  CHECK(residual.call.bytes == gpt_rows * 128 * (2 + 4 + 4));

  // The logits are read, and their gradient is written over them.
  const auto loss = found(calls.forward, "softmax_cross_entropy", {gpt_rows, 512});
  CHECK(loss.times == 1);
  CHECK(loss.call.bytes == gpt_rows * 512 * (2 + 2) + gpt_rows * (4 + 4));

  // AdamW reads weights and gradients, updates two moments and writes new weights. The matrices
  // around gelu() have as many numbers as the table of tokens.
  const auto step = found(calls.end, "adam_step", {512 * 128});
  CHECK(step.times == 1 + 2 * 4);
  CHECK(step.call.bytes == 512 * 128 * 28);
}

TEST_CASE("a layer whose bias alone is trained computes no gradient of its matrix", "[models]") {
  Model model = gpt_of(tiny);
  const auto costs = costs_of(tiny, Precision::fp32);
  const double all = operations(calls_of(model, whole(model), costs).backward);
  double spared = 0;
  for (const auto& unit : model.units)
    for (const auto& parameter : unit.layer->parameters())
      if (parameter.use == Parameter::Use::matrix && parameter.name != "wte.weight") {
        model.frozen.insert(parameter.name);
        spared += 2.0 * gpt_rows * static_cast<double>(parameter.shape.count());
      }
  CHECK(spared > 0);
  CHECK(operations(calls_of(model, whole(model), costs).backward) == Approx(all - spared));
}

TEST_CASE("products of a GPT have 6 operations per weight and token, and those of attention",
          "[models]") {
  const auto sizes = GENERATE(GptSizes{64, 32, 64, 1, 2}, GptSizes{128, 64, 32, 3, 1}, tiny);
  const auto precision =
      GENERATE(Precision::fp32, Precision::tf32, Precision::fp16_gpu, Precision::bf16_gpu);
  const int micro_batches = GENERATE(1, 3);
  CAPTURE(sizes.width, sizes.layers, to_string(precision), micro_batches);
  const Model model = gpt_of(sizes);
  StepRequest step = whole(model);
  step.micro_batches = micro_batches;
  const StepCalls calls = calls_of(model, step, costs_of(sizes, precision));

  const auto weights = static_cast<double>(sizes.layers * 12 * sizes.width * sizes.width +
                                           sizes.vocab * sizes.width);
  const auto tokens = static_cast<double>(micro_batches * gpt_samples * sizes.context);
  // A row of the scores has context / 2 of them on average, and each takes `width` terms.
  const double product = tokens * static_cast<double>(sizes.layers * sizes.context * sizes.width);
  const bool is_cudnn = kernels::activation_type(precision) != DType::f32;
  CHECK(operations(calls.forward) == 2 * weights * tokens + 2 * product);
  CHECK(operations(calls.backward) == 4 * weights * tokens + (is_cudnn ? 5 : 7) * product);
  CHECK(operations(calls.end) == 0);
  CHECK(calls.forward_operations() == operations(calls.forward));
}

TEST_CASE("recomputation calls the kernels of the forward pass again", "[models]") {
  const Model model = gpt_of(tiny);
  StepRequest step = whole(model);
  const auto costs = costs_of(tiny, Precision::bf16_gpu);
  const StepCalls kept = calls_of(model, step, costs);
  step.keep = Keep::input;
  const StepCalls again = calls_of(model, step, costs);
  CHECK(operations(again.forward) == operations(kept.forward));
  CHECK(operations(again.backward) == operations(kept.backward) + operations(kept.forward));
  CHECK(times_of(again.backward, "layer_norm_forward") == 4 + 1);
}

TEST_CASE("each group's sum of gradients is added to the sum of another group", "[models]") {
  const Model model = gpt_of(tiny);
  StepRequest step = whole(model);
  step.micro_batches = 4;
  const auto costs = costs_of(tiny, Precision::fp32);
  const Shape bias{384};  // No product in fp32 adds up anything of this size.
  const auto joins = [&](int groups) {
    step.groups = groups;
    const StepCalls calls = calls_of(model, step, costs);
    std::int64_t times = 0;
    for (const auto& each : calls.backward)
      if (each.call.kernel == "accumulate" && each.call.sizes == bias) times += each.times;
    return times;
  };
  CHECK(joins(1) == 0);
  CHECK(joins(2) == 1 * 4);  // One for each layer.
  CHECK(joins(4) == 3 * 4);
}

TEST_CASE("the stages of a cut have the products of the whole model", "[models]") {
  const Model model = gpt_of(tiny);
  const auto costs = costs_of(tiny, Precision::bf16_gpu);
  StepRequest step = whole(model);
  const StepCalls all = calls_of(model, step, costs);
  double forward = 0, backward = 0;
  const int units = step.units.last;
  REQUIRE(units > 2);
  for (const auto& range :
       {UnitRange{0, 1}, UnitRange{1, units - 1}, UnitRange{units - 1, units}}) {
    step.units = range;
    const StepCalls part = calls_of(model, step, costs);
    forward += operations(part.forward);
    backward += operations(part.backward);
  }
  CHECK(forward == operations(all.forward));
  CHECK(backward == operations(all.backward));
}

TEST_CASE("each kernel of each model, precision and optimizer moves bytes", "[models]") {
  using Kind = OptimizerConfig::Kind;
  const auto precision = GENERATE(Precision::fp32, Precision::fp16_chain, Precision::tf32,
                                  Precision::fp16_gpu, Precision::bf16_gpu);
  const auto optimizer = GENERATE(Kind::sgd, Kind::adamw, Kind::muon);
  const auto models = small_models();
  for (const auto& model : models) {
    CAPTURE(model.kind, to_string(precision), static_cast<int>(optimizer));
    MemoryPool memory;
    Stream stream(memory);
    const Batch batch = made_batch(stream, model, 1, 1);
    CostRequest costs = costs_of(tiny, precision);
    costs.optimizer = OptimizerConfig::of(optimizer);
    costs.input = costs.target = {};
    for (int i = 1; i < batch.input.shape().rank(); ++i) costs.input.append(batch.input.shape()[i]);
    for (int i = 1; i < batch.target.shape().rank(); ++i)
      costs.target.append(batch.target.shape()[i]);
    const StepCalls calls = calls_of(model, whole(model), costs);
    for (const auto* part : {&calls.forward, &calls.backward, &calls.end}) {
      CHECK_FALSE(part->empty());
      for (const auto& [call, times] : *part) {
        CAPTURE(std::string(call.kernel), to_string(call.sizes));
        CHECK(times > 0);
        CHECK(call.bytes > 0);
      }
    }
    CHECK(calls.forward_operations() > 0);
  }
}
