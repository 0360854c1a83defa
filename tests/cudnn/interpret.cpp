#include "interpret.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "core/memory/dtype.h"

namespace troupe::kernels::cudnn {
namespace {

constexpr int rank = 4;
using Index = std::array<std::int64_t, rank>;

/// A tensor's elements at their strides.
struct Numbers {
  Layout layout;
  std::vector<float> all;

  /// Broadcasts: a size of 1 serves every index; a smaller size serves groups of neighbours.
  float& at(const Index& index, const Shape& of) {
    std::int64_t place = 0;
    for (int d = 0; d < rank; ++d) {
      const std::int64_t all_here = layout.sizes[d], here = index[static_cast<std::size_t>(d)];
      const std::int64_t served = all_here == of[d] ? here : here * all_here / of[d];
      place += served * layout.strides[d];
    }
    return all.at(static_cast<std::size_t>(place));
  }
  float& at(const Index& index) {
    std::int64_t place = 0;
    for (int d = 0; d < rank; ++d) place += index[static_cast<std::size_t>(d)] * layout.strides[d];
    return all.at(static_cast<std::size_t>(place));
  }
};

template <class Body>
void for_each(const Shape& s, Body body) {
  for (std::int64_t a = 0; a < s[0]; ++a)
    for (std::int64_t b = 0; b < s[1]; ++b)
      for (std::int64_t c = 0; c < s[2]; ++c)
        for (std::int64_t d = 0; d < s[3]; ++d) body(Index{a, b, c, d});
}

void multiply_matrices(Numbers& a, Numbers& b, Numbers& y) {
  const Shape& heads = y.layout.sizes;
  const Shape of_b{heads[0], heads[1], b.layout.sizes[2], b.layout.sizes[3]};
  const std::int64_t depth = a.layout.sizes[3];
  for_each(heads, [&](const Index& i) {
    const float* x = &a.at({i[0], i[1], i[2], 0});
    const float* w = &b.at({i[0], i[1], 0, i[3]}, of_b);
    double sum = 0;
    for (std::int64_t k = 0; k < depth; ++k)
      sum += double{x[k * a.layout.strides[3]]} * double{w[k * b.layout.strides[2]]};
    y.at(i) = static_cast<float>(sum);
  });
}

/// Calls body(x, w, y) for every image element and weight that contribute to a result.
template <class Body>
void sweep_over(const Sweep& sweep, Numbers& x, Numbers& w, Numbers& y, Body body) {
  const Shape &image = x.layout.sizes, &weights = w.layout.sizes;
  for_each(y.layout.sizes, [&](const Index& to) {
    float& result = y.at(to);
    for (std::int64_t ky = 0; ky < weights[2]; ++ky)
      for (std::int64_t kx = 0; kx < weights[3]; ++kx) {
        const std::int64_t row = to[2] * sweep.stride + ky - sweep.padding;
        const std::int64_t column = to[3] * sweep.stride + kx - sweep.padding;
        if (row < 0 || row >= image[2] || column < 0 || column >= image[3]) continue;
        float* from = &x.at({to[0], 0, row, column});
        float* by = &w.at({to[1], 0, ky, kx});
        for (std::int64_t channel = 0; channel < weights[1]; ++channel)
          body(from[channel * x.layout.strides[1]], by[channel * w.layout.strides[1]], result);
      }
  });
}

void convolve(const Operation& operation, Numbers& a, Numbers& b, Numbers& made) {
  std::ranges::fill(made.all, 0.0f);
  if (operation.kind == Kind::convolution)
    sweep_over(operation.sweep, a, b, made, [](float& x, float& w, float& y) { y += x * w; });
  else if (operation.kind == Kind::convolution_backward_input)
    sweep_over(operation.sweep, made, a, b, [](float& dx, float& w, float& dy) { dx += w * dy; });
  else
    sweep_over(operation.sweep, a, made, b, [](float& x, float& dw, float& dy) { dw += x * dy; });
}

bool is_convolution(Kind kind) {
  return kind == Kind::convolution || kind == Kind::convolution_backward_input ||
         kind == Kind::convolution_backward_weight;
}

template <class Join>
void fold(Numbers& x, Numbers& y, float start, Join join) {
  for_each(y.layout.sizes, [&](const Index& i) { y.at(i) = start; });
  const Shape& sizes = x.layout.sizes;
  for_each(sizes, [&](const Index& i) { y.at(i, sizes) = join(y.at(i, sizes), x.at(i)); });
}

float rounded(float number, Element element) {
  if (element == Element::bf16) return BFloat16::from(number).to_float();
  if (element == Element::f16) return Float16::from(number).to_float();
  return number;
}

float elementwise(const Operation& operation, const Index& index, const std::array<float, 3>& in) {
  switch (operation.kind) {
    case Kind::multiply:
      return in[0] * in[1];
    case Kind::add:
      return in[0] + in[1];
    case Kind::subtract:
      return in[0] - in[1];
    case Kind::divide:
      return in[0] / in[1];
    case Kind::exp:
      return std::exp(in[0]);
    case Kind::log:
      return std::log(in[0]);
    case Kind::copy:
      return in[0];
    case Kind::index:
      return static_cast<float>(index[static_cast<std::size_t>(operation.axis)]);
    case Kind::at_least:
      return in[0] >= in[1] ? 1.0f : 0.0f;
    case Kind::select:
      return in[2] != 0 ? in[0] : in[1];
    case Kind::matmul:
    case Kind::maximum:
    case Kind::sum:
    case Kind::reorder:
    case Kind::convolution:
    case Kind::convolution_backward_input:
    case Kind::convolution_backward_weight:
      break;
  }
  assert(false && "not an operation on elements");
  return 0;
}

void perform(const Operation& operation, const std::vector<Numbers*>& inputs, Numbers& y) {
  const Shape& sizes = y.layout.sizes;
  if (operation.kind == Kind::matmul) return multiply_matrices(*inputs[0], *inputs[1], y);
  if (is_convolution(operation.kind)) return convolve(operation, *inputs[0], *inputs[1], y);
  if (operation.kind == Kind::sum) return fold(*inputs[0], y, 0, std::plus<float>());
  if (operation.kind == Kind::maximum)
    return fold(*inputs[0], y, -std::numeric_limits<float>::infinity(),
                [](float a, float b) { return std::max(a, b); });
  if (operation.kind == Kind::reorder)
    return for_each(sizes, [&](const Index& i) {
      y.at(i) = inputs[0]->at({i[0], i[1], i[3], i[2]});
    });
  for_each(sizes, [&](const Index& i) {
    std::array<float, 3> in{};
    for (std::size_t n = 0; n < inputs.size(); ++n) in[n] = inputs[n]->at(i, sizes);
    y.at(i) = elementwise(operation, i, in);
  });
}

}  // namespace

std::size_t reach(const Layout& layout) {
  std::int64_t last = 0;
  for (int d = 0; d < rank; ++d) last += (layout.sizes[d] - 1) * layout.strides[d];
  return static_cast<std::size_t>(last) + 1;
}

std::vector<std::vector<float>> interpret(const Graph& graph,
                                          std::vector<std::vector<float>> given) {
  std::vector<Numbers> terms;
  for (const auto& operand : graph.operands()) {
    terms.push_back({.layout = operand.layout, .all = {}});
    terms.back().all.resize(reach(operand.layout));
  }
  const auto numbers_of = [&](Term term) -> Numbers& {
    return terms.at(static_cast<std::size_t>(term.number));
  };
  const auto names = graph.given();
  assert(given.size() == names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    assert(given[i].size() >= numbers_of(names[i]).all.size());
    numbers_of(names[i]).all = std::move(given[i]);
  }
  for (const auto& operation : graph.operations()) {
    std::vector<Numbers*> inputs;
    for (const Term term : operation.inputs) inputs.push_back(&numbers_of(term));
    Numbers& made = numbers_of(operation.output);
    perform(operation, inputs, made);
    const auto output = static_cast<std::size_t>(operation.output.number);
    for (float& number : made.all) number = rounded(number, graph.operands()[output].element);
  }
  std::vector<std::vector<float>> stored;
  for (const Term term : graph.made()) stored.push_back(numbers_of(term).all);
  return stored;
}

}  // namespace troupe::kernels::cudnn
