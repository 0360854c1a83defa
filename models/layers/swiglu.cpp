#include "models/layers/swiglu.h"

#include <utility>

#include "kernels/between_layers.h"
#include "kernels/rounding.h"

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
  Tensor y = stream.make(saved[gate].shape(), saved[gate].dtype());
  kernels::swiglu(stream, saved[gate], saved[up], y);
  return y;
}

Tensor SwiGlu::backward_input(const In& in, Tensor dy, SavedSpan saved) const {
  Stream& stream = in.pass.stream;
  const DType type = saved[gate].dtype();
  Tensor dgate = stream.make(dy.shape(), type), dup = stream.make(dy.shape(), type);
  kernels::swiglu_back(stream, saved[gate], saved[up], kernels::as_type(stream, dy, type), dgate,
                       dup);
  saved[gate] = kernels::as_operand(stream, dgate, in.pass.precision);
  saved[up] = kernels::as_operand(stream, dup, in.pass.precision);
  if (in.input_gradient == InputGradient::unwanted) return {};

  Tensor dx;
  gate_.add_backward_input(in.pass, in.weights[gate_slot], saved[gate], dx);
  up_.add_backward_input(in.pass, in.weights[up_slot], saved[up], dx);
  return dx;
}

void SwiGlu::backward_weight(const In& in, SavedSpan saved, SavedSpan gradients) const {
  const Tensor x = std::exchange(saved[input], {});
  gate_.backward_weight(in.pass, x, std::exchange(saved[gate], {}), gradients[gate_slot]);
  up_.backward_weight(in.pass, x, std::exchange(saved[up], {}), gradients[up_slot]);
}

}  // namespace troupe::models
