#include "models/layers/linear.h"

#include <utility>

namespace troupe::models {
Linear::Linear(Parameter weight, std::optional<Parameter> bias)
    : weight_(std::move(weight)), bias_(std::move(bias)), additions_({&weight_}, bias_ ? 2 : 1) {}

std::vector<Parameter> Linear::parameters() const {
  std::vector<Parameter> all = {weight_.parameter()};
  if (bias_) all.push_back(*bias_);
  additions_.declare(all);
  return all;
}

Work Linear::work(const Shape& input) const {
  Work work = weight_.work(input);
  additions_.add_work(input, 0, work);
  return work;
}

Tensor Linear::forward(const In& in, Tensor x, SavedSpan saved, SavedSpan) const {
  saved[input] = kernels::as_operand(in.pass.stream, x, in.pass.precision);
  const float* bias = bias_ ? in.weights[1].value.f32() : nullptr;
  Tensor y = weight_.forward(in.pass, in.weights[0], saved[input], bias);
  additions_.forward(in, 0, saved[input], y);
  return y;
}

Tensor Linear::backward_input(const In& in, Tensor dy, SavedSpan saved) const {
  auto made = kernels::linear_gradient(in.pass.stream, std::move(dy), in.pass.precision);
  saved[gradient_operand] = std::move(made.operand);
  if (bias_) saved[gradient] = std::move(made.for_bias);
  if (in.input_gradient == InputGradient::unwanted) return {};
  if (!additions_.has(0))
    return weight_.backward_input(in.pass, in.weights[0], saved[gradient_operand]);
  Tensor dx;
  weight_.add_backward_input(in.pass, in.weights[0], saved[gradient_operand], dx);
  additions_.backward_input(in, 0, saved[gradient_operand], dx);
  return dx;
}

void Linear::backward_weight(const In& in, SavedSpan saved, SavedSpan gradients) const {
  const Tensor x = std::exchange(saved[input], {});
  const kernels::LinearGradient dy{.operand = std::exchange(saved[gradient_operand], {}),
                                   .for_bias = std::exchange(saved[gradient], {})};
  additions_.backward_weight(in, 0, x, dy.operand, gradients);
  if (in.is_frozen(0) && (!bias_ || in.is_frozen(1))) return;
  if (bias_)
    weight_.backward_parameters(in.pass, x, dy, gradients[0], gradients[1], in.is_frozen(0));
  else
    weight_.backward_weight(in.pass, x, dy.operand, gradients[0]);
}

}  // namespace troupe::models
