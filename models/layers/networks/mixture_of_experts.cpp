#include "models/layers/networks/mixture_of_experts.h"

#include <algorithm>
#include <utility>

#include "kernels/embedding.h"
#include "kernels/steps.h"
#include "models/layers/wide.h"

namespace troupe::models {

MixtureOfExperts::MixtureOfExperts(Parameter router, const std::vector<Expert>& experts,
                                   const Form& form)
    : router_(std::move(router)), form_(form) {
  for (const auto& expert : experts)
    for (auto matrix : {expert.gate, expert.up, expert.down}) {
      matrix.share_of_rows = static_cast<double>(form.top) / static_cast<double>(experts.size());
      experts_.emplace_back(std::move(matrix));
    }
}

std::vector<Parameter> MixtureOfExperts::parameters() const {
  std::vector<Parameter> all = {router_};
  for (const auto& matrix : experts_) all.push_back(matrix.parameter());
  return all;
}

/// Counts the rows of all experts, and that each expert's matrix is read.
Work MixtureOfExperts::work(const Shape& input) const {
  const std::int64_t rows = input.rows() * form_.top;
  const auto others = static_cast<double>(std::min(count(), rows) - 1);
  Work work = product_work(input.rows(), width(), count());
  for (const Part part : {gate_part, up_part, down_part}) {
    const auto& matrix = projection(part);
    Work product = matrix.work({rows, matrix.inputs()});
    const double more =
        others * sizeof(float) * static_cast<double>(matrix.parameter().shape.count());
    for (auto* kernels : {&product.forward, &product.backward_input, &product.backward_weight})
      for (auto& kernel : *kernels) kernel.bytes += more;
    work.add(product);
  }
  const Shape between = projection(up_part).output({rows, width()});
  work.add(elementwise_work(between, between, Trained::no));
  work.add(elementwise_work({rows, width()}, input, Trained::no));
  return work;
}

kernels::RouterShape MixtureOfExperts::router_shape(std::int64_t rows) const {
  return {.tokens = rows, .experts = count(), .top = form_.top, .renormalise = form_.renormalise};
}

kernels::Routes MixtureOfExperts::routes_of(SavedSpan saved) {
  const auto whole_numbers = [&](Saved which) { return saved[which].data<std::int32_t>(); };
  return {.probabilities = saved[probabilities].f32(),
          .logsumexp = saved[logsumexp].f32(),
          .chosen = whole_numbers(chosen),
          .weights = saved[weights].f32(),
          .places = whole_numbers(places),
          .tokens = whole_numbers(tokens),
          .bounds = whole_numbers(bounds)};
}

std::vector<const kernels::PackedLinear*> MixtureOfExperts::matrices(const In& in,
                                                                     Part part) const {
  std::vector<const kernels::PackedLinear*> all;
  for (std::size_t i = 1 + part; i < in.weights.size(); i += parts)
    all.push_back(&in.weights[i].packed);
  return all;
}

Tensor MixtureOfExperts::through(const In& in, Part part, const Tensor& bounds,
                                 const Tensor& x) const {
  Tensor y = in.pass.stream.make(projection(part).output(x.shape()));
  kernels::experts_forward(in.pass.stream, matrices(in, part), bounds, x, y);
  return y;
}

Tensor MixtureOfExperts::back_through(const In& in, Part part, const Tensor& bounds,
                                      const Tensor& dy) const {
  Tensor dx = in.pass.stream.make({dy.shape()[0], projection(part).inputs()});
  kernels::experts_backward_input(in.pass.stream, matrices(in, part), bounds, dy, dx);
  return dx;
}

/// Returns the rows that the experts take, as an operand. It is made again for the weights'
/// gradients, because it is `top` times as large as the input.
Tensor MixtureOfExperts::gathered(const In& in, SavedSpan saved) const {
  const std::int64_t all = saved[tokens].count();
  Tensor x = in.pass.stream.make({all, width()});
  kernels::embedding_forward(in.pass.stream, saved[input].f32(), saved[tokens].data<std::int32_t>(),
                             x.f32(), all, width());
  return kernels::as_operand(in.pass.stream, x, in.pass.precision);
}

Tensor MixtureOfExperts::forward(const In& in, Tensor x, SavedSpan saved, SavedSpan) const {
  Stream& stream = in.pass.stream;
  const Shape shape = x.shape();
  const auto router = router_shape(shape.rows());
  saved[input] = wide(in, x);
  Tensor logits = stream.make({router.tokens, router.experts});
  kernels::matmul(stream, kernels::Transpose::second, saved[input].f32(), in.weights[0].value.f32(),
                  logits.f32(), router.tokens, router.experts, width());
  saved[probabilities] = stream.make(logits.shape());
  saved[logsumexp] = stream.make({router.tokens});
  saved[weights] = stream.make({router.tokens, router.top});
  for (const Saved which : {chosen, places})
    saved[which] = stream.make({router.tokens, router.top}, DType::i32);
  saved[tokens] = stream.make({router.rows()}, DType::i32);
  saved[bounds] = stream.make({router.experts + 1}, DType::i32);
  kernels::route(stream, router, logits.f32(), routes_of(saved));

  const Tensor taken = gathered(in, saved);
  saved[gate] = through(in, gate_part, saved[bounds], taken);
  saved[up] = through(in, up_part, saved[bounds], taken);
  saved[hidden] = kernels::as_operand(stream, gated(stream, form_.gate, saved[gate], saved[up]),
                                      in.pass.precision);
  saved[rows] = through(in, down_part, saved[bounds], saved[hidden]);
  Tensor y = stream.make(shape);
  kernels::sum_experts(stream, router, saved[places].data<std::int32_t>(), saved[weights].f32(),
                       saved[rows].f32(), y.f32(), width());
  return y;
}

Tensor MixtureOfExperts::backward_input(const In& in, Tensor dy, SavedSpan saved) const {
  Stream& stream = in.pass.stream;
  const Shape shape = dy.shape();
  const auto router = router_shape(shape.rows());
  const auto precision = in.pass.precision;
  Tensor drows = stream.make({router.rows(), width()});
  Tensor dweights = stream.make({router.tokens, router.top});
  {
    const Tensor gradient = wide(in, dy);
    kernels::sum_experts_backward(stream, router, saved[places].data<std::int32_t>(),
                                  saved[weights].f32(), saved[rows].f32(), gradient.f32(),
                                  drows.f32(), dweights.f32(), width());
  }
  saved[rows] = kernels::as_operand(stream, drows, precision);
  const float weight = in.pass.loss_gradient * static_cast<float>(in.pass.targets_that_count);
  saved[dlogits] = stream.make(saved[probabilities].shape());
  kernels::route_backward(stream, router, routes_of(saved), dweights.f32(),
                          {form_.losses.balance * weight, form_.losses.z * weight},
                          saved[dlogits].f32());
  {
    const Tensor dhidden = back_through(in, down_part, saved[bounds], saved[rows]);
    const auto made = gated_back(stream, form_.gate, saved[gate], saved[up], dhidden);
    saved[gate] = kernels::as_operand(stream, made.gate, precision);
    saved[up] = kernels::as_operand(stream, made.up, precision);
  }
  Tensor dx;
  if (in.input_gradient == InputGradient::wanted) {
    Tensor taken = back_through(in, gate_part, saved[bounds], saved[gate]);
    const Tensor more = back_through(in, up_part, saved[bounds], saved[up]);
    kernels::accumulate(stream, taken.f32(), more.f32(), taken.count());
    dx = stream.make(shape);
    kernels::sum_experts(stream, router, saved[places].data<std::int32_t>(), nullptr, taken.f32(),
                         dx.f32(), width());
    Tensor of_router = stream.make(shape);
    kernels::matmul(stream, kernels::Transpose::none, saved[dlogits].f32(),
                    in.weights[0].value.f32(), of_router.f32(), router.tokens, width(),
                    router.experts);
    kernels::accumulate(stream, dx.f32(), of_router.f32(), dx.count());
  }
  for (const Saved done : {probabilities, logsumexp, chosen, weights, places}) saved[done] = {};
  return dx;
}

void MixtureOfExperts::add_gradients(const In& in, Part part, const Tensor& bounds, const Tensor& x,
                                     const Tensor& dy, SavedSpan gradients) const {
  std::vector<kernels::ExpertGradient> all;
  for (std::size_t i = 1 + part; i < gradients.size(); i += parts) {
    auto& gradient = all.emplace_back();
    if (in.is_frozen(i)) continue;
    gradient.begins = gradients[i].empty();
    if (gradient.begins) {
      const Stream::Lasting lasting(in.pass.stream);
      gradients[i] = in.pass.stream.make(experts_[i - 1].parameter().shape);
    }
    gradient.dw = gradients[i].f32();
  }
  kernels::experts_backward_weight(in.pass.stream,
                                   linear_shape(projection(part).parameter(), in.pass.precision),
                                   all, bounds, x, dy);
}

void MixtureOfExperts::backward_weight(const In& in, SavedSpan saved, SavedSpan gradients) const {
  Stream& stream = in.pass.stream;
  if (!in.is_frozen(0)) {
    const Tensor& x = saved[input];
    Tensor added = stream.make(router_.shape);
    kernels::matmul(stream, kernels::Transpose::first, saved[dlogits].f32(), x.f32(), added.f32(),
                    count(), width(), x.shape().rows());
    kernels::accumulate(stream, gradients[0].f32(), added.f32(), added.count());
  }
  const Tensor taken = gathered(in, saved);
  add_gradients(in, gate_part, saved[bounds], taken, saved[gate], gradients);
  add_gradients(in, up_part, saved[bounds], taken, saved[up], gradients);
  add_gradients(in, down_part, saved[bounds], saved[hidden], saved[rows], gradients);
  std::ranges::fill(saved, Tensor());
}

}  // namespace troupe::models
