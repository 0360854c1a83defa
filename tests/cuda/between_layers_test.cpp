// The 16-bit tensors between layers equal the fp32 kernels' results, rounded once. kernels_test.cpp
// compares the fp32 kernels with the cores.

#include "kernels/between_layers.h"

#include <cstring>

#include "kernels/rounding.h"
#include "same.h"

namespace troupe::kernels {
namespace {

/// A device's stream that makes the same numbers in 16 bits and in fp32.
class There {
 public:
  std::unique_ptr<Device> device = open_tensor_cores();

  explicit There(DType narrow) : narrow_(narrow) {}
  Stream& stream() { return stream_; }

  Tensor wide(const Shape& shape, std::uint64_t seed) {
    const Tensor here = tensor(cores_, numbers(shape.count(), seed), shape);
    Tensor there = stream_.make(shape);
    stream_.copy(here, there);
    stream_.wait();
    return there;
  }
  Tensor targets(std::int64_t count, std::int64_t classes) {
    Tensor here = cores_.make({count}, DType::i32);
    for (std::int64_t i = 0; i < count; ++i)
      here.data<std::int32_t>()[i] = static_cast<std::int32_t>(i * 1699 % classes);
    Tensor there = stream_.to_here(here);
    stream_.wait();
    return there;
  }
  struct Two {
    Tensor narrow, wide;
  };
  Two both(const Shape& shape, std::uint64_t seed) {
    const Tensor narrow = as_type(stream_, wide(shape, seed), narrow_);
    return {narrow, as_type(stream_, narrow, DType::f32)};
  }
  /// Returns uninitialized tensors for results.
  Two room(const Shape& shape) { return {stream_.make(shape, narrow_), stream_.make(shape)}; }

  bool same(const Tensor& found, const Tensor& wanted) {
    const Tensor a = stream_.to_host(found),
                 b = stream_.to_host(as_type(stream_, wanted, found.dtype()));
    stream_.wait();
    return std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
  }

 private:
  DType narrow_;
  MemoryPool host_, shared_{device ? device_memory() : host_memory()};
  Stream cores_{host_};
  Stream stream_ = device ? Stream(shared_, *device) : Stream(shared_);
};

const auto types = {DType::f16, DType::bf16};
constexpr std::int64_t rows = 131, columns = 37;

}  // namespace

TEST_CASE("norms output 16 bits and accept gradients of 16 bits") {
  There there(GENERATE(values(types)));
  if (!there.device) return;
  Stream& stream = there.stream();
  const Tensor x = there.wide({rows, columns}, 1), weight = there.wide({columns}, 2);
  const Tensor bias = there.wide({columns}, 3), more = there.wide({rows, columns}, 7);
  auto y = there.room({rows, columns}), moments = there.room({2, rows}), rstd = there.room({rows});
  Tensor other_moments = stream.make({2, rows}), other_rstd = stream.make({rows});
  const auto dy = there.both({rows, columns}, 4);
  auto dx = there.room({rows, columns});
  Tensor other_dx = stream.make({rows, columns});
  Tensor dweight = there.wide({columns}, 5), dbias = there.wide({columns}, 6);
  Tensor other_dweight = there.wide({columns}, 5), other_dbias = there.wide({columns}, 6);

  layer_norm(stream, x, weight, bias, 1e-5f, y.narrow, moments.wide);
  layer_norm(stream, x, weight, bias, 1e-5f, y.wide, other_moments);
  CHECK(there.same(y.narrow, y.wide));
  CHECK(there.same(moments.wide, other_moments));
  Tensor sum = stream.make({rows, columns}), other_sum = stream.make({rows, columns});
  const Tensor& branch = GENERATE(true, false) ? dy.narrow : dy.wide;
  Tensor none;
  layer_norm_of_sum(stream, branch, x, weight, bias, 1e-5f, sum, y.narrow, moments.wide);
  sum_of(stream, branch, x, other_sum);
  layer_norm(stream, other_sum, weight, bias, 1e-5f, y.wide, other_moments);
  CHECK(there.same(sum, other_sum));
  CHECK(there.same(y.narrow, y.wide));
  CHECK(there.same(moments.wide, other_moments));
  layer_norm_back(stream, x, weight, moments.wide, dy.narrow, {}, dx.wide, none);
  layer_norm_back(stream, x, weight, moments.wide, dy.wide, {}, other_dx, none);
  CHECK(there.same(dx.wide, other_dx));
  layer_norm_back(stream, x, weight, moments.wide, dy.narrow, more, dx.wide, none);
  sum_of(stream, other_dx, more, other_dx);
  CHECK(there.same(dx.wide, other_dx));
  layer_norm_back(stream, x, weight, moments.wide, branch, more, dx.wide, dx.narrow);
  CHECK(there.same(dx.wide, other_dx));
  CHECK(there.same(dx.narrow, other_dx));
  layer_norm_back(stream, x, weight, moments.wide, branch, {}, dx.wide, dx.narrow);
  CHECK(there.same(dx.narrow, dx.wide));
  layer_norm_back_to_weight(stream, x, moments.wide, dy.narrow, dweight, dbias);
  layer_norm_back_to_weight(stream, x, moments.wide, dy.wide, other_dweight, other_dbias);
  CHECK(there.same(dweight, other_dweight));
  CHECK(there.same(dbias, other_dbias));

  rms_norm(stream, x, weight, 1e-5f, y.narrow, rstd.wide);
  rms_norm(stream, x, weight, 1e-5f, y.wide, other_rstd);
  CHECK(there.same(y.narrow, y.wide));
  CHECK(there.same(rstd.wide, other_rstd));
  rms_norm_of_sum(stream, branch, x, weight, 1e-5f, sum, y.narrow, rstd.wide);
  rms_norm(stream, other_sum, weight, 1e-5f, y.wide, other_rstd);
  CHECK(there.same(sum, other_sum));
  CHECK(there.same(y.narrow, y.wide));
  CHECK(there.same(rstd.wide, other_rstd));
  rms_norm_back(stream, x, weight, rstd.wide, dy.narrow, {}, dx.wide, none);
  rms_norm_back(stream, x, weight, rstd.wide, dy.wide, {}, other_dx, none);
  CHECK(there.same(dx.wide, other_dx));
  rms_norm_back(stream, x, weight, rstd.wide, dy.narrow, more, dx.wide, none);
  sum_of(stream, other_dx, more, other_dx);
  CHECK(there.same(dx.wide, other_dx));
  rms_norm_back(stream, x, weight, rstd.wide, branch, more, dx.wide, dx.narrow);
  CHECK(there.same(dx.wide, other_dx));
  CHECK(there.same(dx.narrow, other_dx));
  rms_norm_back(stream, x, weight, rstd.wide, branch, {}, dx.wide, dx.narrow);
  CHECK(there.same(dx.narrow, dx.wide));
  rms_norm_back_to_weight(stream, x, rstd.wide, dy.narrow, dweight);
  rms_norm_back_to_weight(stream, x, rstd.wide, dy.wide, other_dweight);
  CHECK(there.same(dweight, other_dweight));
}

TEST_CASE("activations in 16 bits equal the fp32 results, rounded") {
  There there(GENERATE(values(types)));
  if (!there.device) return;
  Stream& stream = there.stream();
  // The number of elements is a multiple of 8, or is not.
  const std::int64_t some_rows = GENERATE(131, 132);
  const Shape shape{2, some_rows, 6};
  const auto a = there.both(shape, 1), b = there.both(shape, 2), dy = there.both(shape, 3);
  auto y = there.room(shape), dx = there.room(shape), other = there.room(shape);

  Tensor sum = stream.make(shape), other_sum = stream.make(shape);
  sum_of(stream, a.narrow, b.wide, sum);
  sum_of(stream, a.wide, b.wide, other_sum);
  CHECK(there.same(sum, other_sum));

  relu(stream, a.narrow, y.narrow);
  relu(stream, a.wide, y.wide);
  CHECK(there.same(y.narrow, y.wide));
  relu_back(stream, y.narrow, dy.narrow, dx.narrow);
  relu_back(stream, y.wide, dy.wide, dx.wide);
  CHECK(there.same(dx.narrow, dx.wide));

  swiglu(stream, a.narrow, b.narrow, y.narrow);
  swiglu(stream, a.wide, b.wide, y.wide);
  CHECK(there.same(y.narrow, y.wide));
  swiglu_back(stream, a.narrow, b.narrow, dy.narrow, dx.narrow, other.narrow);
  swiglu_back(stream, a.wide, b.wide, dy.wide, dx.wide, other.wide);
  CHECK(there.same(dx.narrow, dx.wide));
  CHECK(there.same(other.narrow, other.wide));

  auto turned = there.both(shape, 4);
  const auto rotation = GENERATE(Rotation::forward, Rotation::back);
  rotate(stream, rotation, turned.narrow, 3, {.theta = 10'000});
  rotate(stream, rotation, turned.wide, 3, {.theta = 10'000});
  CHECK(there.same(turned.narrow, turned.wide));
}

// The longer rows take several chunks, the last of them partial. The longest are kept in shared
// memory.
TEST_CASE("logits in 16 bits give the losses of the same numbers in fp32") {
  There there(GENERATE(values(types)));
  if (!there.device) return;
  Stream& stream = there.stream();
  const std::int64_t classes = GENERATE(1, 7, 9001, 50'304, 56'000);
  // Few rows are enough if they are long.
  const std::int64_t rows = classes > 10'000 ? 5 : 131;
  auto logits = there.both({rows, classes}, 1);
  const Tensor targets = there.targets(rows, classes);
  Tensor losses = stream.make({rows}), other_losses = stream.make({rows});
  const float scale = 0.37f;
  const CrossEntropyForm form{.smoothing = 0.1f, .z = 1e-3f};
  cross_entropy(stream, logits.narrow, targets, losses, LogitGradient::unwanted, scale, form);
  cross_entropy(stream, logits.wide, targets, other_losses, LogitGradient::unwanted, scale, form);
  CHECK(there.same(losses, other_losses));
  CHECK(there.same(logits.narrow, logits.wide));
  cross_entropy(stream, logits.narrow, targets, losses, LogitGradient::wanted, scale, form);
  cross_entropy(stream, logits.wide, targets, other_losses, LogitGradient::wanted, scale, form);
  CHECK(there.same(losses, other_losses));
  CHECK(there.same(logits.narrow, logits.wide));
}

TEST_CASE("outputs in 16 bits give the losses of the same numbers in fp32") {
  There there(GENERATE(values(types)));
  if (!there.device) return;
  Stream& stream = there.stream();
  const auto loss = GENERATE(ElementLoss::binary, ElementLoss::squared);
  const auto z = there.both({rows, columns}, 1);
  const Tensor targets = there.wide({rows, columns}, 2);
  Tensor losses = stream.make({rows * columns}), other_losses = stream.make({rows * columns});
  Tensor none;
  element_losses(stream, loss, z.narrow, targets, losses, none, 1);
  element_losses(stream, loss, z.wide, targets, other_losses, none, 1);
  CHECK(there.same(losses, other_losses));
  auto dz = there.room({rows, columns});
  element_losses(stream, loss, z.narrow, targets, losses, dz.narrow, 0.37f);
  element_losses(stream, loss, z.wide, targets, other_losses, dz.wide, 0.37f);
  CHECK(there.same(losses, other_losses));
  CHECK(there.same(dz.narrow, dz.wide));
}

}  // namespace troupe::kernels
