// cuDNN would accept wrong formulas too, so the cores check ours.

#include <limits>
#include <vector>

#include "interpret.h"
#include "kernels/cuda/cudnn/attention.h"
#include "kernels/cuda/cudnn/convolution.h"
#include "tests/kernels/numbers.h"

namespace troupe::kernels::cudnn {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// An attention problem with q, k and v side by side.
struct Example {
  AttentionShape shape;
  std::int64_t row = (shape.heads + 2 * shape.kv_heads) * shape.width;
  std::int64_t keys = shape.heads * shape.width;
  std::int64_t values = keys + shape.kv_heads * shape.width;
  std::int64_t out_row = keys;
  std::int64_t positions = shape.batch * shape.length;
  float scale = 1 / std::sqrt(static_cast<float>(shape.width));
  std::vector<float> qkv = numbers(positions * row, 1);
  std::vector<float> dout = numbers(positions * out_row, 2);
  // The results of the cores.
  std::vector<float> out = std::vector<float>(dout.size());
  std::vector<float> logsumexp =
      std::vector<float>(static_cast<std::size_t>(positions * shape.heads));
  std::vector<float> dqkv = std::vector<float>(qkv.size());

  explicit Example(const AttentionShape& of) : shape(of) {
    MemoryPool pool;
    Stream stream(pool);
    kernels::attention_forward(stream, shape, {qkv.data(), row}, {qkv.data() + keys, row},
                               {qkv.data() + values, row}, {out.data(), out_row}, logsumexp.data());
    kernels::attention_backward(stream, shape, {qkv.data(), row}, {qkv.data() + keys, row},
                                {qkv.data() + values, row}, {out.data(), out_row}, logsumexp.data(),
                                {dout.data(), out_row}, {dqkv.data(), row},
                                {dqkv.data() + keys, row}, {dqkv.data() + values, row});
  }

  /// Adds the inputs that a mask needs.
  std::vector<std::vector<float>> masked(std::vector<std::vector<float>> given) const {
    if (shape.mask == Mask::causal) given.push_back({-infinity});
    return given;
  }

  AttentionProblem problem() const {
    return {.shape = shape,
            .q_row = row,
            .k_row = row,
            .v_row = row,
            .out_row = out_row,
            .element = Element::f32};
  }
};

std::vector<float> from(const std::vector<float>& all, std::int64_t first) {
  return {all.begin() + first, all.end()};
}

/// Returns whether `found` has the numbers of `wanted` at the heads' places in the rows.
bool same_heads(const Example& example, std::int64_t heads, const std::vector<float>& found,
                const std::vector<float>& wanted) {
  std::vector<float> ours;
  std::vector<double> theirs;
  for (std::int64_t p = 0; p < example.positions; ++p)
    for (std::int64_t i = 0; i < heads * example.shape.width; ++i) {
      const auto place = static_cast<std::size_t>(p * example.row + i);
      ours.push_back(found.at(place));
      theirs.push_back(wanted.at(place));
    }
  return close(ours, theirs, 100);
}

bool same(const std::vector<float>& found, const std::vector<float>& wanted) {
  return close(found, {wanted.begin(), wanted.end()}, 100);
}

template <class Body>
void for_each_example(Body body) {
  for (const std::int64_t kv_heads : {1, 2, 4})
    for (const Mask mask : {Mask::full, Mask::causal}) {
      INFO(kv_heads << " heads of keys, " << (mask == Mask::causal ? "causal" : "full"));
      body(Example(
          {.batch = 2, .length = 7, .heads = 4, .kv_heads = kv_heads, .width = 8, .mask = mask}));
    }
}

}  // namespace

TEST_CASE("the graph of attention forward computes what the cores compute", "[cudnn]") {
  for_each_example([](const Example& e) {
    const auto made =
        interpret(attention_forward(e.problem()),
                  e.masked({e.qkv, from(e.qkv, e.keys), from(e.qkv, e.values), {e.scale}}));
    REQUIRE(made.size() == 2);
    CHECK(same(made[0], e.logsumexp));
    CHECK(same(made[1], e.out));
  });
}

TEST_CASE("the graph of attention backward computes what the cores compute", "[cudnn]") {
  for_each_example([](const Example& e) {
    for (const Sums sums : {Sums::as_they_come, Sums::in_order}) {
      const auto made =
          interpret(attention_backward(e.problem(), sums), e.masked({e.qkv,
                                                                     from(e.qkv, e.keys),
                                                                     from(e.qkv, e.values),
                                                                     e.out,
                                                                     e.dout,
                                                                     e.logsumexp,
                                                                     {e.scale},
                                                                     {1}}));
      REQUIRE(made.size() == (sums == Sums::in_order ? 4 : 5));
      CHECK(same_heads(e, e.shape.kv_heads, made[1], from(e.dqkv, e.values)));
      CHECK(same_heads(e, e.shape.kv_heads, made[2], from(e.dqkv, e.keys)));
      CHECK(same_heads(e, e.shape.heads, made.back(), e.dqkv));
    }
  });
}

TEST_CASE("the graphs of convolutions compute what the cores compute", "[cudnn]") {
  const Conv2dShape shape =
      GENERATE(Conv2dShape{2, 3, 7, 6, 4, 3, 1, 1}, Conv2dShape{2, 3, 7, 6, 4, 3, 2, 1},
               Conv2dShape{1, 2, 5, 5, 3, 1, 2, 0});
  const auto x = numbers(shape.batch * shape.in_channels * shape.height * shape.width, 1);
  const auto w = numbers(shape.out_channels * shape.in_channels * shape.kernel * shape.kernel, 2);
  const auto dy =
      numbers(shape.batch * shape.out_channels * shape.out_height() * shape.out_width(), 3);
  std::vector<float> y(dy.size()), dx(x.size()), dw(w.size());
  MemoryPool pool;
  Stream stream(pool);
  conv2d_forward(stream, shape, x.data(), w.data(), y.data());
  conv2d_backward_input(stream, shape, w.data(), dy.data(), dx.data());
  conv2d_backward_weight(stream, shape, x.data(), dy.data(), dw.data());
  const ConvolutionProblem problem{.shape = shape};
  CHECK(same(interpret(convolution_forward(problem), {x, w}).at(0), y));
  CHECK(same(interpret(convolution_backward_input(problem), {w, dy}).at(0), dx));
  CHECK(same(interpret(convolution_backward_weight(problem), {x, dy}).at(0), dw));
}

}  // namespace troupe::kernels::cudnn
