#include "kernels/linear.h"

#include <array>
#include <bit>
#include <cmath>
#include <vector>

#include "catch.h"
#include "kernels/cpu/parts/features.h"
#include "kernels/rounding.h"
#include "tests/kernels/differences.h"

namespace troupe::kernels {
namespace {

constexpr std::array all_precisions = {Precision::fp32, Precision::fp16_chain,
                                       Precision::bf16_pairs, Precision::bf16_blocks};

struct Case {
  std::int64_t rows;
  LinearShape shape;
};

/// Returns sizes around the edges of tiles, panels, blocks and vectors.
std::vector<Case> cases() {
  std::vector<Case> all;
  const std::int64_t sizes[][3] = {{1, 1, 1},    {2, 3, 5},     {7, 31, 33},   {13, 64, 16},
                                   {14, 17, 32}, {15, 257, 47}, {29, 513, 95}, {131, 40, 67},
                                   {96, 1, 130}, {300, 128, 1}, {37, 30, 600}};
  for (const auto& [rows, inputs, outputs] : sizes)
    for (const auto layout : {WeightLayout::out_in, WeightLayout::in_out})
      for (const auto precision : all_precisions)
        all.push_back({rows, {inputs, outputs, layout, precision}});
  return all;
}

float rounded(float number, Precision precision) {
  if (precision == Precision::fp16_chain) return Float16::from(number).to_float();
  return is_bf16(precision) ? BFloat16::from(number).to_float() : number;
}

/// Computes one element of a product term by term. a is [rows, depth], b [depth, columns].
template <class A, class B>
float chain(float sum, std::int64_t depth, Precision precision, A a, B b) {
  const auto add = [&](std::int64_t k, float& to) {
    to = std::fma(rounded(a(k), precision), rounded(b(k), precision), to);
  };
  switch (precision) {
    case Precision::fp32:
    case Precision::fp16_chain:
      for (std::int64_t k = 0; k < depth; ++k) add(k, sum);
      break;
    case Precision::bf16_pairs:
      for (std::int64_t k = 0; k < depth; k += 2)
        for (std::int64_t i = std::min(k + 2, depth); i > k; --i) add(i - 1, sum);
      break;
    case Precision::bf16_blocks:
      for (std::int64_t block = 0; block < depth; block += 32) {
        float part[2] = {0, 0};  // Sums of the even and of the odd terms.
        for (std::int64_t k = block; k < std::min(block + 32, depth); ++k) add(k, part[k % 2]);
        sum += part[0] + part[1];
      }
      break;
    case Precision::tf32:
    case Precision::fp16_gpu:
    case Precision::bf16_gpu:
      FAIL("the cores do not compute that");
  }
  return sum;
}

/// Returns what make(tensor) writes into a tensor filled with other numbers.
template <class Make>
std::vector<float> made(Stream& stream, const Shape& shape, Make make) {
  Tensor to =
      tensor(stream, std::vector<float>(static_cast<std::size_t>(shape.count()), 9.0f), shape);
  make(to);
  return {to.f32(), to.f32() + to.count()};
}

/// A linear layer with random numbers and the results of its three products.
struct Layer {
  explicit Layer(const Case& c, int threads = 1)
      : rows(c.rows),
        shape(c.shape),
        stream(pool, threads),
        x(numbers(rows * shape.inputs, 1)),
        dy(numbers(rows * shape.outputs, 2)),
        w(numbers(shape.inputs * shape.outputs, 3)),
        bias(numbers(shape.outputs, 4)),
        dw(numbers(shape.inputs * shape.outputs, 5)) {
    const PackedLinear packed(stream, shape, w.data());
    const Tensor x_operand =
        as_operand(stream, tensor(stream, x, {rows, shape.inputs}), shape.precision);
    const Tensor dy_operand =
        as_operand(stream, tensor(stream, dy, {rows, shape.outputs}), shape.precision);
    y = made(stream, {rows, shape.outputs},
             [&](Tensor& to) { linear_forward(stream, packed, x_operand, bias.data(), to); });
    dx = made(stream, {rows, shape.inputs},
              [&](Tensor& to) { linear_backward_input(stream, packed, dy_operand, to); });
    linear_backward_weight(stream, shape, x_operand, dy_operand, dw.data(), rows);
  }

  std::size_t at(std::int64_t in, std::int64_t out) const {
    return static_cast<std::size_t>(shape.layout == WeightLayout::in_out ? in * shape.outputs + out
                                                                         : out * shape.inputs + in);
  }
  float x_at(std::int64_t r, std::int64_t in) const {
    return x[static_cast<std::size_t>(r * shape.inputs + in)];
  }
  float dy_at(std::int64_t r, std::int64_t out) const {
    return dy[static_cast<std::size_t>(r * shape.outputs + out)];
  }

  std::int64_t rows;
  LinearShape shape;
  MemoryPool pool;
  Stream stream;
  std::vector<float> x, dy, w, bias, y, dx, dw;
};

std::string describe(const Case& c) {
  return std::to_string(c.rows) + " x " + std::to_string(c.shape.inputs) + " x " +
         std::to_string(c.shape.outputs) +
         (c.shape.layout == WeightLayout::in_out ? " in_out" : " out_in") + " " +
         std::string(to_string(c.shape.precision));
}

}  // namespace

TEST_CASE("a linear layer adds products by fma in the order that its precision defines",
          "[kernels]") {
  for (const auto& c : cases()) {
    INFO(describe(c));
    const Layer layer(c);
    const auto& [inputs, outputs, layout, precision] = c.shape;
    std::int64_t wrong = 0;
    for (std::int64_t r = 0; r < c.rows; ++r)
      for (std::int64_t o = 0; o < outputs; ++o)
        wrong += layer.y[static_cast<std::size_t>(r * outputs + o)] !=
                 chain(
                     layer.bias[static_cast<std::size_t>(o)], inputs, precision,
                     [&](auto k) { return layer.x_at(r, k); },
                     [&](auto k) { return layer.w[layer.at(k, o)]; });
    CHECK(wrong == 0);
    for (std::int64_t r = 0; r < c.rows; ++r)
      for (std::int64_t i = 0; i < inputs; ++i)
        wrong += layer.dx[static_cast<std::size_t>(r * inputs + i)] !=
                 chain(
                     0, outputs, precision, [&](auto k) { return layer.dy_at(r, k); },
                     [&](auto k) { return layer.w[layer.at(i, k)]; });
    CHECK(wrong == 0);
    const auto before = numbers(inputs * outputs, 5);
    for (std::int64_t i = 0; i < inputs; ++i)
      for (std::int64_t o = 0; o < outputs; ++o)
        wrong += layer.dw[layer.at(i, o)] != chain(
                                                 before[layer.at(i, o)], c.rows, precision,
                                                 [&](auto k) { return layer.x_at(k, i); },
                                                 [&](auto k) { return layer.dy_at(k, o); });
    CHECK(wrong == 0);
  }
}

TEST_CASE("a linear layer in fp32 agrees with sums in double", "[kernels]") {
  const Layer layer({53, {301, 75, WeightLayout::out_in, Precision::fp32}});
  std::vector<double> y;
  for (std::int64_t r = 0; r < 53; ++r)
    for (std::int64_t o = 0; o < 75; ++o) {
      double sum = layer.bias[static_cast<std::size_t>(o)];
      for (std::int64_t i = 0; i < 301; ++i)
        sum += double{layer.x_at(r, i)} * layer.w[layer.at(i, o)];
      y.push_back(sum);
    }
  CHECK(close(layer.y, y, 301));
}

TEST_CASE("a linear layer has the same bits with any number of threads and instruction set",
          "[kernels]") {
  for (const auto precision : all_precisions)
    for (const auto layout : {WeightLayout::out_in, WeightLayout::in_out}) {
      const Case c{260, {131, 411, layout, precision}};
      const Layer one(c, 1);
      test::on_every_target([&](const std::string& target) {
        INFO(target);
        for (const int threads : {1, 2, 3}) {
          const Layer other(c, threads);
          CHECK(other.y == one.y);
          CHECK(other.dx == one.dx);
          CHECK(other.dw == one.dw);
        }
      });
    }
}

TEST_CASE("a weight gradient has the same bits whether distant rows are copied or not",
          "[kernels]") {
  const bool before = cpu::reads_distant_rows_in_place();
  for (const auto& [rows, inputs, outputs] :
       {std::array<std::int64_t, 3>{400, 131, 416}, {37, 16, 32}, {9, 3, 96}}) {
    const Case c{rows, {inputs, outputs, WeightLayout::in_out, Precision::fp32}};
    test::on_every_target([&](const std::string& target) {
      INFO(target << ", " << describe(c));
      cpu::read_distant_rows_in_place(true);
      const Layer in_place(c);
      cpu::read_distant_rows_in_place(false);
      CHECK(Layer(c, 2).dw == in_place.dw);
    });
  }
  cpu::read_distant_rows_in_place(before);
}

TEST_CASE("the weight gradient of two micro-batches has the bits of one call with both",
          "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  const LinearShape shape{20, 30, WeightLayout::out_in, Precision::fp32};
  const auto x = tensor(stream, numbers(12 * 20, 1), {12, 20});
  const auto dy = tensor(stream, numbers(12 * 30, 2), {12, 30});
  std::vector<float> whole(600), halves(600);
  linear_backward_weight(stream, shape, x, dy, whole.data(), 12);
  linear_backward_weight(stream, shape, x.slice(0, 7), dy.slice(0, 7), halves.data(), 7);
  linear_backward_weight(stream, shape, x.slice(7, 5), dy.slice(7, 5), halves.data(), 5);
  CHECK(halves == whole);
}

TEST_CASE("linear_weight_gradient has the bits of linear_backward_weight onto zeros", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  for (const auto precision : all_precisions) {
    const LinearShape shape{20, 30, WeightLayout::out_in, precision};
    const auto x = as_operand(stream, tensor(stream, numbers(400 * 20, 1), {400, 20}), precision);
    const auto dy = as_operand(stream, tensor(stream, numbers(400 * 30, 2), {400, 30}), precision);
    std::vector<float> added(600), begun(600, 7.0f);
    linear_backward_weight(stream, shape, x, dy, added.data(), 400);
    linear_weight_gradient(stream, shape, x, dy, begun.data(), 400);
    CHECK(begun == added);
  }
}

TEST_CASE("a linear layer without a bias adds its products to zero", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  const std::vector<float> w = {1, 2, 3, 4};
  const PackedLinear packed(stream, {2, 2, WeightLayout::in_out, Precision::fp32}, w.data());
  const auto y = made(stream, {1, 2}, [&](Tensor& to) {
    linear_forward(stream, packed, tensor(stream, {10, 100}, {1, 2}), nullptr, to);
  });
  CHECK(y == std::vector<float>{310, 420});
}

TEST_CASE("an infinity or a NaN reaches only the outputs that depend on it", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  const auto w = numbers(3 * 5, 1);
  for (const auto precision : all_precisions) {
    const PackedLinear packed(stream, {3, 5, WeightLayout::out_in, precision}, w.data());
    const auto x = tensor(stream, {1, INFINITY, 1, 1, 1, NAN, 1, 1, 1}, {3, 3});
    const auto y = made(stream, {3, 5}, [&](Tensor& to) {
      linear_forward(stream, packed, as_operand(stream, x, precision), nullptr, to);
    });
    for (std::size_t i = 0; i < 15; ++i) {
      CHECK(std::isinf(y[i]) == (i < 5));
      CHECK(std::isnan(y[i]) == (i >= 5 && i < 10));
    }
  }
}

TEST_CASE("as_operand rounds to bf16 like BFloat16", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool, 2);
  std::vector<float> all;
  for (std::uint64_t bits = 0; bits <= 0xffffffffu; bits += 0x1357) {
    all.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  }
  const auto count = static_cast<std::int64_t>(all.size());
  const Tensor operand = as_operand(stream, tensor(stream, all, {count}), Precision::bf16_blocks);
  REQUIRE(operand.dtype() == DType::bf16);
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < all.size(); ++i)
    wrong += operand.data<BFloat16>()[i].bits != BFloat16::from(all[i]).bits;
  CHECK(wrong == 0);
}

TEST_CASE("as_operand and widen_all convert fp16 like Float16", "[kernels]") {
  MemoryPool pool;
  std::vector<float> all;
  for (std::uint64_t bits = 0; bits <= 0xffffffffu; bits += 0x1357)
    all.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  const auto count = static_cast<std::int64_t>(all.size());
  test::on_every_target([&](const std::string& target) {
    INFO(target);
    Stream stream(pool, 2);
    const Tensor operand = as_operand(stream, tensor(stream, all, {count}), Precision::fp16_chain);
    Tensor wide = stream.make({count});
    widen_all(stream, operand.data<Float16>(), wide.f32(), count);
    REQUIRE(operand.dtype() == DType::f16);
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      const Float16 half = operand.data<Float16>()[i];
      wrong += half.bits != Float16::from(all[static_cast<std::size_t>(i)]).bits;
      wrong += std::bit_cast<std::uint32_t>(wide.f32()[i]) !=
               std::bit_cast<std::uint32_t>(half.to_float());
    }
    CHECK(wrong == 0);
  });
}

TEST_CASE("as_operand returns the same tensor in fp32", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  const Tensor x = tensor(stream, {1, 2}, {2});
  CHECK(as_operand(stream, x, Precision::fp32).raw() == x.raw());
}

TEST_CASE("linear_gradient rounds the operand and keeps the gradient for the bias in fp32",
          "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  const auto fp32 = linear_gradient(stream, tensor(stream, {1, 2}, {2}), Precision::fp32);
  CHECK(fp32.operand.raw() == fp32.for_bias.raw());
  const auto bf16 =
      linear_gradient(stream, tensor(stream, {1, 1.001f}, {2}), Precision::bf16_pairs);
  CHECK(bf16.for_bias.f32()[1] == 1.001f);
  CHECK(bf16.operand.data<BFloat16>()[1].to_float() == 1);
}

TEST_CASE("a bias gradient adds rows in pieces of 128 and then adds the pieces", "[kernels]") {
  MemoryPool pool;
  for (const int threads : {1, 2, 3}) {
    Stream stream(pool, threads);
    for (const auto& [rows, columns] :
         {std::pair{1, 1}, {5, 3}, {128, 700}, {129, 2}, {400, 1537}}) {
      const auto dy = numbers(std::int64_t{rows} * columns, 1);
      auto db = numbers(columns, 2);
      auto wanted = db;
      for (int c = 0; c < columns; ++c) {
        float total = 0;
        for (int first = 0; first < rows; first += 128) {
          float piece = 0;
          for (int r = first; r < std::min(rows, first + 128); ++r)
            piece += dy[static_cast<std::size_t>(r * columns + c)];
          total += piece;
        }
        wanted[static_cast<std::size_t>(c)] += total;
      }
      bias_backward(stream, dy.data(), db.data(), rows, columns);
      CHECK(db == wanted);
    }
  }
}

TEST_CASE("matmul accepts either operand transposed", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool, 2);
  const std::vector<float> a = {1, 2, 3, 4, 5, 6};    // [2, 3]
  const std::vector<float> a_t = {1, 4, 2, 5, 3, 6};  // [3, 2]
  const std::vector<float> b = {1, 0, 2, 0, 1, 1};    // [3, 2]
  const std::vector<float> b_t = {1, 2, 1, 0, 0, 1};  // [2, 3]
  const std::vector<float> wanted = {8, 3, 20, 6};
  std::vector<float> c(4);
  matmul(stream, Transpose::none, a.data(), b.data(), c.data(), 2, 2, 3);
  CHECK(c == wanted);
  matmul(stream, Transpose::first, a_t.data(), b.data(), c.data(), 2, 2, 3);
  CHECK(c == wanted);
  matmul(stream, Transpose::second, a.data(), b_t.data(), c.data(), 2, 2, 3);
  CHECK(c == wanted);
}

TEST_CASE("linear products allocate no memory after the first step", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  const LinearShape shape{130, 70, WeightLayout::out_in, Precision::bf16_blocks};
  const auto w = numbers(130 * 70, 1);
  std::vector<float> dw(130 * 70);
  Tensor y = stream.make({50, 70});
  std::uint64_t allocations = 0;
  for (int step = 0; step < 3; ++step) {
    const PackedLinear packed(stream, shape, w.data());
    const Tensor x =
        as_operand(stream, tensor(stream, numbers(50 * 130, 2), {50, 130}), Precision::bf16_blocks);
    const Tensor dy =
        as_operand(stream, tensor(stream, numbers(50 * 70, 3), {50, 70}), Precision::bf16_blocks);
    linear_forward(stream, packed, x, nullptr, y);
    linear_backward_weight(stream, shape, x, dy, dw.data(), 50);
    if (step == 0) allocations = pool.counters().allocations;
  }
  CHECK(pool.counters().allocations == allocations);
}

}  // namespace troupe::kernels
