#include "models/layers/attention/rotary_attention.h"

#include <array>
#include <utility>

#include "kernels/rounding.h"

namespace troupe::models {

RotaryAttention::RotaryAttention(AttentionCore core, Projections projections)
    : core_(std::move(core)),
      query_(std::move(projections.query)),
      key_(std::move(projections.key)),
      value_(std::move(projections.value)),
      biases_(std::move(projections.biases)),
      additions_({&query_, &key_, &value_}, first_norm() + core_.parameters().size()) {}

std::vector<Parameter> RotaryAttention::parameters() const {
  std::vector<Parameter> all{query_.parameter(), key_.parameter(), value_.parameter()};
  all.insert(all.end(), biases_.begin(), biases_.end());
  for (auto& norm : core_.parameters()) all.push_back(std::move(norm));
  additions_.declare(all);
  return all;
}

Work RotaryAttention::work(const Shape& in) const {
  Work work;
  for (const Projection* projection : {&query_, &key_, &value_}) work.add(projection->work(in));
  for (std::size_t i = 0; i < projections; ++i) additions_.add_work(in, i, work);
  work.add(core_.work(in));
  return work;
}

Tensor RotaryAttention::forward(const In& in, Tensor x, SavedSpan saved, SavedSpan) const {
  const Tensor operand = kernels::as_operand(in.pass.stream, x, in.pass.precision);
  const auto made = [&](std::size_t i) {
    const float* bias = has_biases() ? in.weights[projections + i].value.f32() : nullptr;
    Tensor y = projection(i).forward(in.pass, in.weights[i], operand, bias);
    additions_.forward(in, i, operand, y);
    return y;
  };
  Tensor q = made(0), k = made(1), v = made(2);
  saved[input] = operand;
  return core_.forward(in, in.weights.subspan(first_norm()), std::move(q), std::move(k),
                       std::move(v), of_core(saved));
}

Tensor RotaryAttention::backward_input(const In& in, Tensor dy, SavedSpan saved) const {
  auto made = core_.backward(in.pass, in.weights.subspan(first_norm()), dy, of_core(saved));
  std::array<Tensor, projections> gradients{std::move(made.q), std::move(made.k),
                                            std::move(made.v)};
  for (std::size_t i = 0; i < projections; ++i) {
    auto gradient =
        kernels::linear_gradient(in.pass.stream, std::move(gradients[i]), in.pass.precision);
    of_core(saved)[i] = std::move(gradient.operand);
    if (has_biases()) saved[input + 1 + i] = std::move(gradient.for_bias);
  }
  if (in.input_gradient == InputGradient::unwanted) return {};

  Tensor dx;
  for (std::size_t i = 0; i < projections; ++i)
    projection(i).add_backward_input(in.pass, in.weights[i], of_core(saved)[i], dx);
  for (std::size_t i = 0; i < projections; ++i)
    additions_.backward_input(in, i, of_core(saved)[i], dx);
  return dx;
}

void RotaryAttention::backward_weight(const In& in, SavedSpan saved, SavedSpan gradients) const {
  const Tensor x = std::exchange(saved[input], {});
  for (std::size_t i = 0; i < projections; ++i) {
    const Tensor operand = std::exchange(of_core(saved)[i], {});
    const Tensor for_bias = has_biases() ? std::exchange(saved[input + 1 + i], {}) : Tensor();
    additions_.backward_weight(in, i, x, operand, gradients);
    if (in.is_frozen(i) && (!has_biases() || in.is_frozen(projections + i))) continue;
    if (has_biases())
      projection(i).backward_parameters(in.pass, x, {.operand = operand, .for_bias = for_bias},
                                        gradients[i], gradients[projections + i], in.is_frozen(i));
    else
      projection(i).backward_weight(in.pass, x, operand, gradients[i]);
  }
  core_.backward_weight(in.pass, of_core(saved), gradients.subspan(first_norm()));
}

}  // namespace troupe::models
