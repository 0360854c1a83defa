#include "models/layers/swiglu.h"

#include <utility>

#include "kernels/activations.h"
#include "kernels/steps.h"

namespace troupe::models {
SwiGlu::SwiGlu(Parameter gate, Parameter up) : gate_(std::move(gate)), up_(std::move(up)) {}

std::vector<Parameter> SwiGlu::parameters() const { return {gate_.parameter(), up_.parameter()}; }

Work SwiGlu::work(const Shape& input) const {
  Work work = gate_.work(input);
  work.add(up_.work(input));
  work.add(elementwise_work(output(input), output(input), Trained::no));
  return work;
}

Tensor SwiGlu::forward(const In& in, Tensor x, SavedSpan saved, SavedSpan) const {
  Stream& stream = in.pass.stream;
  saved[input] = kernels::as_operand(stream, x, in.pass.precision);
  saved[gate] = gate_.forward(in.pass, in.weights[gate_slot], saved[input], nullptr);
  saved[up] = up_.forward(in.pass, in.weights[up_slot], saved[input], nullptr);
  Tensor y = stream.make(saved[gate].shape());
  kernels::swiglu_forward(stream, saved[gate].f32(), saved[up].f32(), y.f32(), y.count());
  return y;
}

Tensor SwiGlu::backward_input(const In& in, Tensor dy, SavedSpan saved) const {
  Stream& stream = in.pass.stream;
  Tensor dgate = stream.make(dy.shape());
  Tensor dup = stream.make(dy.shape());
  kernels::swiglu_backward(stream, saved[gate].f32(), saved[up].f32(), dy.f32(), dgate.f32(),
                           dup.f32(), dy.count());
  saved[gate] = kernels::as_operand(stream, dgate, in.pass.precision);
  saved[up] = kernels::as_operand(stream, dup, in.pass.precision);
  if (in.input_gradient == InputGradient::unwanted) return {};

  Tensor dx = gate_.backward_input(in.pass, in.weights[gate_slot], saved[gate]);
  const Tensor through_up = up_.backward_input(in.pass, in.weights[up_slot], saved[up]);
  kernels::accumulate(stream, dx.f32(), through_up.f32(), dx.count());
  return dx;
}

void SwiGlu::backward_weight(const In& in, SavedSpan saved, SavedSpan gradients) const {
  const Tensor x = std::exchange(saved[input], {});
  gate_.backward_weight(in.pass, x, std::exchange(saved[gate], {}), gradients[gate_slot]);
  up_.backward_weight(in.pass, x, std::exchange(saved[up], {}), gradients[up_slot]);
}

}  // namespace troupe::models
