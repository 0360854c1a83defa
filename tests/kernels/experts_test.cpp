#include "kernels/experts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "catch.h"
#include "tests/kernels/differences.h"

namespace troupe::kernels {
namespace {

using Numbers = std::vector<std::int32_t>;

/// A choice of experts with memory for it.
struct Routed {
  RouterShape shape;
  Floats probabilities, logsumexp, weights;
  Numbers chosen, places, tokens, bounds;

  explicit Routed(const RouterShape& of)
      : shape(of),
        probabilities(size(of.tokens * of.experts)),
        logsumexp(size(of.tokens)),
        weights(size(of.rows())),
        chosen(size(of.rows())),
        places(size(of.rows())),
        tokens(size(of.rows())),
        bounds(size(of.experts + 1)) {}

  Routed(Stream& stream, const RouterShape& of, const Floats& logits) : Routed(of) {
    route(stream, shape, logits.data(), pointers());
  }

  Routes pointers() {
    return {probabilities.data(), logsumexp.data(), chosen.data(), weights.data(),
            places.data(),        tokens.data(),    bounds.data()};
  }
  static std::size_t size(std::int64_t count) { return static_cast<std::size_t>(count); }
};

TEST_CASE("a router chooses the most probable experts, of equal ones the lower", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  const Floats logits{0,  1, 1, 1,   //
                      5,  5, 5, 5,   //
                      -1, 3, 0, 2};  //
  Routed routed(stream, {.tokens = 3, .experts = 4, .top = 2}, logits);
  CHECK(routed.chosen == Numbers{1, 2, 0, 1, 1, 3});
  CHECK(routed.bounds == Numbers{0, 1, 4, 5, 6});
  // Rows lie by expert, then by token.
  CHECK(routed.tokens == Numbers{1, 0, 1, 2, 0, 2});
  CHECK(routed.places == Numbers{1, 4, 0, 2, 3, 5});
  CHECK(routed.weights[2] == 0.25f);
  CHECK(routed.logsumexp[1] == Approx(5 + std::log(4.0)));
  const double sum = std::exp(-1) + std::exp(3) + 1 + std::exp(2);
  CHECK(routed.weights[4] == Approx(std::exp(3) / sum).epsilon(1e-6));
  CHECK(routed.probabilities[8] == Approx(std::exp(-1) / sum).epsilon(1e-6));

  Routed whole(stream, {.tokens = 3, .experts = 4, .top = 2, .renormalise = true}, logits);
  CHECK(whole.chosen == routed.chosen);
  CHECK(whole.weights[2] == 0.5f);
  CHECK(whole.weights[4] + whole.weights[5] == Approx(1));
}

TEST_CASE("a router gives each token different experts, whatever the logits", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const Floats logits{nan, nan, nan, 0, nan, 1, -infinity, -infinity, -infinity, infinity, 0, 0};
  Routed routed(stream, {.tokens = 4, .experts = 3, .top = 3}, logits);
  for (std::size_t t = 0; t < 4; ++t) {
    const auto first = routed.chosen.begin() + static_cast<std::ptrdiff_t>(3 * t);
    CHECK(std::set(first, first + 3) == std::set<std::int32_t>{0, 1, 2});
  }
  CHECK(routed.bounds == Numbers{0, 4, 8, 12});
}

TEST_CASE("gradients of a router agree with finite differences", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  const bool renormalise = GENERATE(false, true);
  const RouterLosses losses{.balance = GENERATE(0.0f, 0.7f), .z = GENERATE(0.0f, 0.3f)};
  CAPTURE(renormalise, losses.balance, losses.z);
  const RouterShape shape{.tokens = 5, .experts = 4, .top = 2, .renormalise = renormalise};
  const auto logits = numbers_up_to(3, shape.tokens * shape.experts, 1);
  const auto dweights = numbers(shape.rows(), 2);
  Routed routed(stream, shape, logits);
  Floats dlogits(logits.size());
  route_backward(stream, shape, routed.pointers(), dweights.data(), losses, dlogits.data());

  // The objective, with the choice of experts as it is.
  const auto objective = [&](const Doubles& x) {
    double all = 0;
    for (std::size_t t = 0; t < 5; ++t) {
      double sum = 0, chosen = 0;
      for (std::size_t e = 0; e < 4; ++e) sum += std::exp(x[4 * t + e]);
      const auto probability = [&](std::size_t e) { return std::exp(x[4 * t + e]) / sum; };
      const auto expert = [&](std::size_t j) {
        return static_cast<std::size_t>(routed.chosen[2 * t + j]);
      };
      for (std::size_t j = 0; j < 2; ++j) chosen += probability(expert(j));
      for (std::size_t j = 0; j < 2; ++j)
        all += dweights[2 * t + j] * probability(expert(j)) / (renormalise ? chosen : 1);
      for (std::size_t e = 0; e < 4; ++e)
        all += losses.balance * 4 * (routed.bounds[e + 1] - routed.bounds[e]) / 5.0 *
               probability(e) / 5.0;
      all += losses.z * std::log(sum) * std::log(sum) / 5.0;
    }
    return Doubles{all};
  };
  const auto wanted = numerical_gradient(objective, logits, {1});
  for (std::size_t i = 0; i < wanted.size(); ++i)
    CHECK(dlogits[i] == Approx(wanted[i]).epsilon(1e-4).margin(1e-6));
}

TEST_CASE("results of experts are added by rank, and their gradients go back", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  const RouterShape shape{.tokens = 2, .experts = 2, .top = 2};
  const Numbers places{1, 2, 0, 3};
  // In float, 1 + 2^30 - 2^30 depends on the order.
  const Floats weights{1, -1, 0.5f, 2}, rows{10, 20, 1, 0x1p30f, 3, 0x1p30f, 5, 6};
  Floats y(4), plain(4);
  sum_experts(stream, shape, places.data(), weights.data(), rows.data(), y.data(), 2);
  CHECK(y == Floats{-2, 0, 15, 22});
  sum_experts(stream, shape, places.data(), nullptr, rows.data(), plain.data(), 2);
  CHECK(plain == Floats{4, 0x1p31f, 15, 26});

  const Floats dy{2, 3, 4, 5};
  Floats drows(8), dweights(4);
  sum_experts_backward(stream, shape, places.data(), weights.data(), rows.data(), dy.data(),
                       drows.data(), dweights.data(), 2);
  CHECK(drows == Floats{2, 2.5f, 2, 3, -2, -3, 8, 10});
  CHECK(dweights == Floats{2 + 3 * 0x1p30f, 6 + 3 * 0x1p30f, 140, 50});
}

Tensor tensor_of(Stream& stream, const Floats& numbers, const Shape& shape) {
  Tensor made = stream.make(shape);
  std::ranges::copy(numbers, made.f32());
  return made;
}

TEST_CASE("products of experts have the bits of products of their rows", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool, 2);
  const auto precision = GENERATE(Precision::fp32, Precision::fp16_chain, Precision::bf16_pairs,
                                  Precision::bf16_blocks);
  const auto layout = GENERATE(WeightLayout::out_in, WeightLayout::in_out);
  CAPTURE(to_string(precision), layout);
  const LinearShape shape{37, 545, layout, precision};
  // One expert has no rows, one has one, and one more rows than a piece of work takes.
  const Numbers ends{0, 5, 5, 6, 306};
  const std::int64_t rows = 306, experts = 4;
  Tensor bounds = stream.make({experts + 1}, DType::i32);
  std::ranges::copy(ends, bounds.data<std::int32_t>());
  std::vector<PackedLinear> packed;
  std::vector<const PackedLinear*> all;
  for (std::int64_t e = 0; e < experts; ++e) {
    const auto w = numbers(shape.inputs * shape.outputs, 10 + static_cast<std::uint64_t>(e));
    packed.emplace_back(stream, shape, w.data());
  }
  for (const auto& matrix : packed) all.push_back(&matrix);
  const Tensor x = as_operand(
      stream, tensor_of(stream, numbers(rows * shape.inputs, 1), {rows, shape.inputs}), precision);
  const Tensor dy =
      as_operand(stream, tensor_of(stream, numbers(rows * shape.outputs, 2), {rows, shape.outputs}),
                 precision);
  Tensor y = stream.make({rows, shape.outputs}), dx = stream.make({rows, shape.inputs});
  experts_forward(stream, all, bounds, x, y);
  experts_backward_input(stream, all, bounds, dy, dx);

  const auto floats_of = [](const Tensor& some) {
    return Floats(some.f32(), some.f32() + some.count());
  };
  const Shape of_matrix{shape.inputs, shape.outputs};
  const auto begun = numbers(of_matrix.count(), 3);
  for (const bool begins : {true, false}) {
    std::vector<Tensor> dw;
    std::vector<ExpertGradient> gradients;
    for (std::int64_t e = 0; e < experts; ++e) {
      dw.push_back(tensor_of(stream, begun, of_matrix));
      gradients.push_back({e == 0 ? nullptr : dw.back().f32(), begins});
    }
    experts_backward_weight(stream, shape, gradients, bounds, x, dy);
    CHECK(floats_of(dw[0]) == begun);  // Nobody wants it.
    CHECK(floats_of(dw[1]) == (begins ? Floats(begun.size()) : begun));
    for (std::size_t e = 2; e < 4; ++e) {
      const std::int64_t first = ends[e], count = ends[e + 1] - first;
      Tensor wanted = tensor_of(stream, begun, of_matrix);
      (begins ? linear_weight_gradient : linear_backward_weight)(
          stream, shape, x.slice(first, count), dy.slice(first, count), wanted.f32(), count);
      CHECK(floats_of(dw[e]) == floats_of(wanted));
    }
  }
  for (std::size_t e = 0; e < 4; ++e) {
    const std::int64_t first = ends[e], count = ends[e + 1] - first;
    if (count == 0) continue;
    Tensor of_y = stream.make({count, shape.outputs}), of_dx = stream.make({count, shape.inputs});
    linear_forward(stream, packed[e], x.slice(first, count), nullptr, of_y);
    linear_backward_input(stream, packed[e], dy.slice(first, count), of_dx);
    CHECK(floats_of(y.slice(first, count)) == floats_of(of_y));
    CHECK(floats_of(dx.slice(first, count)) == floats_of(of_dx));
  }
}

TEST_CASE("experts have the same bits with any number of threads and any instruction set",
          "[kernels]") {
  const RouterShape shape{.tokens = 301, .experts = 7, .top = 3, .renormalise = true};
  const std::int64_t columns = 45;
  const auto logits = numbers_up_to(4, shape.tokens * shape.experts, 1);
  const auto rows = numbers(shape.rows() * columns, 2), dy = numbers(shape.tokens * columns, 3);
  CHECK(same_bits([&](Stream& stream) {
    Routed routed(stream, shape, logits);
    Floats y(dy.size()), drows(rows.size()), dweights(routed.weights.size()),
        dlogits(logits.size());
    sum_experts(stream, shape, routed.places.data(), routed.weights.data(), rows.data(), y.data(),
                columns);
    sum_experts_backward(stream, shape, routed.places.data(), routed.weights.data(), rows.data(),
                         dy.data(), drows.data(), dweights.data(), columns);
    route_backward(stream, shape, routed.pointers(), dweights.data(), {0.1f, 0.2f}, dlogits.data());
    Floats all = routed.probabilities;
    for (const auto* more : {&routed.logsumexp, &routed.weights, &y, &drows, &dweights, &dlogits})
      all.insert(all.end(), more->begin(), more->end());
    for (const auto* more : {&routed.chosen, &routed.places, &routed.tokens, &routed.bounds})
      all.insert(all.end(), more->begin(), more->end());
    return all;
  }));
}

}  // namespace
}  // namespace troupe::kernels
