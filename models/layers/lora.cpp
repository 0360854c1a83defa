#include "models/layers/lora.h"

#include <algorithm>
#include <utility>

#include "kernels/between_layers.h"
#include "kernels/combine.h"
#include "kernels/rounding.h"
#include "models/arithmetic.h"
#include "models/layers/wide.h"
#include "models/patterns.h"

namespace troupe::models {
namespace {

std::string without_ending(const std::string& name) {
  constexpr std::string_view ending = ".weight";
  return name.ends_with(ending) ? name.substr(0, name.size() - ending.size()) : name;
}

/// Returns the number by which an addition draws, which no layer of the model has: those are
/// numbered from 0. It depends on the name alone (FNV-1a).
std::uint32_t operation_of(std::string_view name) {
  std::uint32_t hash = 2166136261u;
  for (const char letter : name) hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619u;
  return hash | 0x80000000u;
}

}  // namespace

bool Lora::matches(std::string_view name) const {
  return std::ranges::any_of(
      match, [&](const std::string& pattern) { return matches_pattern(pattern, name); });
}

bool is_of_lora(std::string_view parameter) {
  return parameter.ends_with(".lora_A.weight") || parameter.ends_with(".lora_B.weight");
}

Additions::Additions(std::initializer_list<const Projection*> matrices, std::size_t first) {
  for (const Projection* projection : matrices) {
    auto& addition = additions_.emplace_back();
    const Parameter& matrix = projection->parameter();
    if (matrix.lora_rank == 0) continue;
    const auto shape = linear_shape(matrix, kernels::Precision::fp32);
    const std::string name = without_ending(matrix.name);
    const auto declared = [&](const char* end, const Shape& of, const Init& init) {
      return Parameter{.name = name + end,
                       .shape = of,
                       .init = init,
                       .use = Parameter::Use::matrix,
                       .layout = kernels::WeightLayout::out_in};
    };
    addition = {
        Projection(declared(".lora_A.weight", {matrix.lora_rank, shape.inputs},
                            Init::by_inputs(shape.inputs))),
        Projection(declared(".lora_B.weight", {shape.outputs, matrix.lora_rank}, Init::zeros())),
        matrix.lora_scale,
        matrix.lora_rate,
        Dropout(matrix.lora_rate, operation_of(name)),
        first};
    first += 2;
  }
}

void Additions::declare(std::vector<Parameter>& parameters) const {
  for (const auto& addition : additions_)
    if (addition) {
      parameters.push_back(addition->a.parameter());
      parameters.push_back(addition->b.parameter());
    }
}

void Additions::add_work(const Shape& input, std::size_t projection, Work& work) const {
  const auto& addition = additions_[projection];
  if (!addition) return;
  work.add(addition->a.work(input));
  work.add(addition->b.work(addition->a.output(input)));
}

/// Returns scale * small as an operand. Scaling the narrow tensor is cheaper than the wide one.
Tensor Additions::scaled_operand(const Layer::In& in, const Addition& addition,
                                 const Tensor& small) const {
  Stream& stream = in.pass.stream;
  const Tensor numbers = wide(in, small);
  const Tensor scaled = combined(stream, addition.scale, numbers, 0, numbers);
  return kernels::as_operand(stream, scaled, in.pass.precision);
}

/// Returns the operand x after dropout, which draws the same mask in each pass of a micro-batch.
Tensor Additions::dropped(const Layer::In& in, const Addition& addition, const Tensor& x) const {
  if (addition.rate == 0 || in.pass.mode == Mode::evaluation) return x;
  return kernels::as_operand(in.pass.stream, addition.dropout.forward(in, x, {}, {}),
                             in.pass.precision);
}

Tensor Additions::inner(const Layer::In& in, const Addition& addition, const Tensor& x) const {
  return scaled_operand(
      in, addition,
      addition.a.forward(in.pass, in.weights[addition.first], dropped(in, addition, x), nullptr));
}

Tensor Additions::inner_gradient(const Layer::In& in, const Addition& addition,
                                 const Tensor& dy) const {
  return scaled_operand(in, addition,
                        addition.b.backward_input(in.pass, in.weights[addition.first + 1], dy));
}

void Additions::forward(const Layer::In& in, std::size_t projection, const Tensor& x,
                        Tensor& y) const {
  const auto& addition = additions_[projection];
  if (!addition) return;
  Stream& stream = in.pass.stream;
  const Tensor u = inner(in, *addition, x);
  const Tensor added = addition->b.forward(in.pass, in.weights[addition->first + 1], u, nullptr);
  Tensor sum = stream.make(y.shape());
  kernels::sum_of(stream, y, wide(in, added), sum);
  y = kernels::as_type(stream, sum, y.dtype());
}

void Additions::backward_input(const Layer::In& in, std::size_t projection, const Tensor& dy,
                               Tensor& dx) const {
  const auto& addition = additions_[projection];
  if (!addition) return;
  const Tensor du = inner_gradient(in, *addition, dy);
  if (addition->rate == 0)
    return addition->a.add_backward_input(in.pass, in.weights[addition->first], du, dx);
  Tensor share;
  addition->a.add_backward_input(in.pass, in.weights[addition->first], du, share);
  accumulate(in.pass.stream, dx, addition->dropout.backward_input(in, std::move(share), {}));
}

/// Makes the narrow tensors again instead of keeping them: they cost little.
void Additions::backward_weight(const Layer::In& in, std::size_t projection, const Tensor& x,
                                const Tensor& dy, Layer::SavedSpan gradients) const {
  const auto& addition = additions_[projection];
  if (!addition) return;
  addition->b.backward_weight(in.pass, inner(in, *addition, x), dy, gradients[addition->first + 1]);
  addition->a.backward_weight(in.pass, dropped(in, *addition, x), inner_gradient(in, *addition, dy),
                              gradients[addition->first]);
}

}  // namespace troupe::models
