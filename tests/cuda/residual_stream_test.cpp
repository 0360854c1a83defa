// A residual stream gives the bits that its norms, inner layers and sums give in separate kernels.

#include "models/layers/residual_stream.h"

#include <cstring>
#include <vector>

#include "kernels/rounding.h"
#include "models/layers/dropout.h"
#include "models/layers/layer_norm.h"
#include "models/layers/linear.h"
#include "models/layers/networks/feed_forward.h"
#include "models/layers/residual.h"
#include "models/layers/rms_norm.h"
#include "models/layers/sequence.h"
#include "models/train/optimizer.h"
#include "same.h"

namespace troupe::models {
namespace {

using kernels::Precision;

constexpr std::int64_t width = 48;

Parameter matrix(const std::string& name, std::int64_t inputs, std::int64_t outputs) {
  return {.name = name, .shape = {outputs, inputs}, .use = Parameter::Use::matrix};
}
Parameter bias(const std::string& name, std::int64_t outputs) {
  return {.name = name, .shape = {outputs}};
}

NormPtr first_norm() { return std::make_unique<const LayerNorm>("m", width, 1e-5f); }
NormPtr second_norm() { return std::make_unique<const RmsNorm>("n", width, 1e-5f); }
LayerPtr first_inner(double rate) {
  return in_sequence(std::make_unique<const Linear>(matrix("w", width, width), bias("b", width)),
                     std::make_unique<const Dropout>(rate, 1));
}
LayerPtr second_inner() {
  return std::make_unique<const FeedForward>(
      FeedForward::Part{matrix("u", width, 2 * width), bias("ub", 2 * width)},
      FeedForward::Part{matrix("d", 2 * width, width), bias("db", width)}, kernels::Gelu::tanh);
}

/// Returns a layer's output, and the gradients of its input and weights.
std::vector<float> both_ways(const Layer& layer, Stream& stream, Precision precision,
                             InputGradient input_gradient) {
  const auto parameters = layer.parameters();
  std::uint64_t seed = 10;
  std::vector<NamedTensor> values;
  for (const auto& parameter : parameters)
    values.push_back(
        {parameter.name, kernels::tensor(stream, kernels::numbers(parameter.shape.count(), ++seed),
                                         parameter.shape)});
  const Optimizer optimizer({}, parameters, {}, precision);
  const auto weights = *optimizer.from(stream, values, 0);

  const Shape shape{3, 7, width};
  const Pass pass{.stream = stream, .precision = precision, .key = {.seed = 1}, .targets = {}};
  const Layer::In in{
      .pass = pass, .weights = weights->slots, .buffers = {}, .input_gradient = input_gradient};
  std::vector<Tensor> saved(static_cast<std::size_t>(layer.saved()));
  std::vector<Tensor> gradients(parameters.size());
  const auto numbers = [&](std::uint64_t which) {
    return kernels::tensor(stream, kernels::numbers(shape.count(), which), shape);
  };
  std::vector<float> all;
  kernels::append(all, stream, layer.forward(in, numbers(1), saved, {}));
  const Tensor dx = layer.backward_input(in, numbers(2), saved);
  if (input_gradient == InputGradient::wanted) kernels::append(all, stream, dx);
  layer.backward_weight(in, saved, gradients);
  for (const auto& gradient : gradients) kernels::append(all, stream, gradient);
  return all;
}

TEST_CASE("a residual stream has the bits of separate residuals") {
  const auto device = kernels::open_tensor_cores();
  if (!device) return;
  const auto precision =
      GENERATE(Precision::fp32, Precision::tf32, Precision::fp16_gpu, Precision::bf16_gpu);
  const double rate = GENERATE(0.0, 0.3);
  const auto input_gradient = GENERATE(InputGradient::wanted, InputGradient::unwanted);
  CAPTURE(to_string(precision), rate);
  const auto fused =
      residual_stream({first_norm(), first_inner(rate)}, {second_norm(), second_inner()});
  const auto separate =
      in_sequence(std::make_unique<const Residual>(in_sequence(first_norm(), first_inner(rate))),
                  std::make_unique<const Residual>(in_sequence(second_norm(), second_inner())));
  MemoryPool memory(kernels::device_memory());
  Stream stream(memory, *device);
  const auto wanted = both_ways(*separate, stream, precision, input_gradient);
  const auto found = both_ways(*fused, stream, precision, input_gradient);
  REQUIRE(found.size() == wanted.size());
  CHECK(std::memcmp(found.data(), wanted.data(), found.size() * sizeof(float)) == 0);
}

}  // namespace
}  // namespace troupe::models
