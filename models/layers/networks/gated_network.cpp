#include "models/layers/networks/gated_network.h"

#include <utility>

namespace troupe::models {

GatedNetwork::GatedNetwork(Parameter gate, Parameter up, Gate form)
    : gate_(std::move(gate)), up_(std::move(up)), additions_({&gate_, &up_}, 2), form_(form) {}

std::vector<Parameter> GatedNetwork::parameters() const {
  std::vector<Parameter> all = {gate_.parameter(), up_.parameter()};
  additions_.declare(all);
  return all;
}

Work GatedNetwork::work(const Shape& input) const {
  Work work = gate_.work(input);
  work.add(up_.work(input));
  additions_.add_work(input, gate_slot, work);
  additions_.add_work(input, up_slot, work);
  work.add(elementwise_work(output(input), output(input), Trained::no));
  return work;
}

Tensor GatedNetwork::forward(const In& in, Tensor x, SavedSpan saved, SavedSpan) const {
  Stream& stream = in.pass.stream;
  saved[input] = kernels::as_operand(stream, x, in.pass.precision);
  saved[gate] = gate_.forward(in.pass, in.weights[gate_slot], saved[input], nullptr);
  saved[up] = up_.forward(in.pass, in.weights[up_slot], saved[input], nullptr);
  additions_.forward(in, gate_slot, saved[input], saved[gate]);
  additions_.forward(in, up_slot, saved[input], saved[up]);
  return gated(stream, form_, saved[gate], saved[up]);
}

Tensor GatedNetwork::backward_input(const In& in, Tensor dy, SavedSpan saved) const {
  Stream& stream = in.pass.stream;
  const auto made = gated_back(stream, form_, saved[gate], saved[up], dy);
  saved[gate] = kernels::as_operand(stream, made.gate, in.pass.precision);
  saved[up] = kernels::as_operand(stream, made.up, in.pass.precision);
  if (in.input_gradient == InputGradient::unwanted) return {};

  Tensor dx;
  gate_.add_backward_input(in.pass, in.weights[gate_slot], saved[gate], dx);
  up_.add_backward_input(in.pass, in.weights[up_slot], saved[up], dx);
  additions_.backward_input(in, gate_slot, saved[gate], dx);
  additions_.backward_input(in, up_slot, saved[up], dx);
  return dx;
}

void GatedNetwork::backward_weight(const In& in, SavedSpan saved, SavedSpan gradients) const {
  const Tensor x = std::exchange(saved[input], {});
  const auto add = [&](const Projection& projection, Slot slot, Saved gradient) {
    const Tensor dy = std::exchange(saved[gradient], {});
    additions_.backward_weight(in, slot, x, dy, gradients);
    if (!in.is_frozen(slot)) projection.backward_weight(in.pass, x, dy, gradients[slot]);
  };
  add(gate_, gate_slot, gate);
  add(up_, up_slot, up);
}

}  // namespace troupe::models
