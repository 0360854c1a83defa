#include "models/layers/networks/feed_forward.h"

#include <utility>

#include "kernels/linear_gelu.h"

namespace troupe::models {

FeedForward::FeedForward(Part up, Part down, kernels::Gelu form)
    : up_(std::move(up.matrix)),
      down_(std::move(down.matrix)),
      up_bias_(std::move(up.bias)),
      down_bias_(std::move(down.bias)),
      form_(form) {}

std::vector<Parameter> FeedForward::parameters() const {
  return {up_.parameter(), up_bias_, down_.parameter(), down_bias_};
}

Work FeedForward::work(const Shape& input) const {
  const Shape between = up_.output(input);
  Work work = up_.work(input);
  work.add(elementwise_work(between, between, Trained::no));
  work.add(down_.work(between));
  return work;
}

Tensor FeedForward::forward(const In& in, Tensor x, SavedSpan saved, SavedSpan) const {
  Stream& stream = in.pass.stream;
  saved[input] = kernels::as_operand(stream, x, in.pass.precision);
  auto made = kernels::linear_gelu_forward(stream, in.weights[up_matrix].packed, saved[input],
                                           in.weights[up_bias].value.f32(), form_);
  saved[pre] = std::move(made.pre);
  saved[hidden] = std::move(made.y);
  return down_
      .forward(in.pass, in.weights[down_matrix], saved[hidden], in.weights[down_bias].value.f32())
      .reshaped(output(x.shape()));
}

Tensor FeedForward::backward_input(const In& in, Tensor dy, SavedSpan saved) const {
  Stream& stream = in.pass.stream;
  auto of_down = kernels::linear_gradient(stream, std::move(dy), in.pass.precision);
  auto of_up = kernels::linear_gelu_backward(stream, in.weights[down_matrix].packed,
                                             of_down.operand, form_, saved[pre]);
  saved[down_operand] = std::move(of_down.operand);
  saved[down_gradient] = std::move(of_down.for_bias);
  saved[up_operand] = std::move(of_up.operand);
  saved[up_gradient] = std::move(of_up.for_bias);
  if (in.input_gradient == InputGradient::unwanted) return {};
  return up_.backward_input(in.pass, in.weights[up_matrix], saved[up_operand])
      .reshaped(saved[input].shape());
}

void FeedForward::backward_weight(const In& in, SavedSpan saved, SavedSpan gradients) const {
  const auto add = [&](const Projection& part, Slot matrix, Slot bias, Saved x, Saved operand,
                       Saved gradient) {
    const Tensor read = std::exchange(saved[x], {});
    const kernels::LinearGradient dy{.operand = std::exchange(saved[operand], {}),
                                     .for_bias = std::exchange(saved[gradient], {})};
    if (in.is_frozen(matrix) && in.is_frozen(bias)) return;
    part.backward_parameters(in.pass, read, dy, gradients[matrix], gradients[bias],
                             in.is_frozen(matrix));
  };
  add(down_, down_matrix, down_bias, hidden, down_operand, down_gradient);
  add(up_, up_matrix, up_bias, input, up_operand, up_gradient);
}

}  // namespace troupe::models
