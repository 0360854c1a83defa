// Shared by the kernels of a rehearsed device. A kernel notes its call, with the bytes and
// operations of the implementation in kernels/cuda, and allocates what that one allocates.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "core/memory/device.h"
#include "core/memory/stream.h"
#include "kernels/attention.h"
#include "kernels/conv2d.h"
#include "kernels/device_kernels.h"
#include "kernels/rehearsed/kernel_call.h"
#include "kernels/row_sums.h"

namespace troupe::kernels::rehearsed {

class RehearsedDevice final : public Device {
 public:
  RehearsedDevice(std::unique_ptr<MemorySource> host, std::vector<KernelCall>* calls)
      : host_(std::move(host)), calls_(calls) {}

  const DeviceKernels& kernels() const override;
  void enter() override {}
  void wait() override {}
  Mark mark() override { return ++last_; }
  Result<Mark> passed() override { return last_; }
  Mark follow(Device&, Mark) override { return mark(); }
  void begin_range(const char*) override {}
  void end_range() override {}
  MemoryPlace place() const override { return {0}; }
  MemoryPool& host_memory() override { return host_; }
  void copy(const void*, MemoryPlace, void*, std::size_t) override {}

  void note(const KernelCall& call) {
    if (calls_) calls_->push_back(call);
  }

 private:
  MemoryPool host_;
  std::vector<KernelCall>* calls_;
  Mark last_ = 0;
};

/// Notes a call. Only kernels of a rehearsed device may call it.
inline void note(Stream& stream, const KernelCall& call) {
  static_cast<RehearsedDevice&>(*stream.device()).note(call);
}

/// Returns the bytes of one element behind each pointer, without the null pointers. List a pointer
/// twice if the kernel reads and writes its elements.
template <class... Numbers>
double moved(Numbers*... numbers) {
  return (0.0 + ... + (numbers ? static_cast<double>(sizeof(Numbers)) : 0.0));
}

inline double real(std::int64_t count) { return static_cast<double>(count); }

/// Notes an elementwise kernel that moves `bytes` for each element.
inline void note_each(Stream& stream, std::string_view kernel, std::int64_t count, double bytes) {
  note(stream, {.kernel = kernel, .sizes = {count}, .bytes = real(count) * bytes});
}

/// Allocates a tensor of each count, all at once, and frees them.
inline void take_and_give(Stream& stream, std::initializer_list<std::int64_t> counts,
                          DType type = DType::f32) {
  std::vector<Tensor> taken;
  for (const auto count : counts) taken.push_back(stream.make({count}, type));
}

/// Takes memory for `sums` partial sums per column and piece, if there are several pieces. Returns
/// the bytes that the partial sums move.
inline double take_for_row_sums(Stream& stream, std::int64_t sums, std::int64_t rows,
                                std::int64_t columns) {
  const std::int64_t pieces = (rows + rows_in_piece - 1) / rows_in_piece;
  if (pieces <= 1) return 0;
  take_and_give(stream, {sums * pieces * columns});
  return 2 * real(sums * pieces * columns) * sizeof(float);
}

/// Notes a kernel of attention that computes `products` products of the size of the scores. Bytes
/// are those of `queries` tensors like q, `keys` tensors like k, and the logarithms of sums.
inline void note_attention(Stream& stream, std::string_view kernel, const AttentionShape& shape,
                           double products, double queries, double keys, std::size_t number,
                           Factors factors) {
  const double rows = real(shape.batch * shape.length);
  // A position attends to all keys, or with a causal mask to half of them on average.
  const double seen = real(shape.key_count()) * (shape.mask == Mask::causal ? 0.5 : 1.0);
  const double q = rows * real(shape.heads * shape.width);
  const double k = real(shape.batch * shape.key_count() * shape.kv_heads * shape.width);
  note(stream, {.kernel = kernel,
                .sizes = {shape.batch, shape.length, shape.heads, shape.kv_heads, shape.width},
                .bytes = (queries * q + keys * k) * static_cast<double>(number) +
                         rows * real(shape.heads) * sizeof(float),
                .operations = products * 2 * q * seen,
                .factors = factors});
}

/// Notes a kernel of a convolution whose weights have `weight_bytes` each.
inline void note_convolution(Stream& stream, std::string_view kernel, const Conv2dShape& shape,
                             std::size_t number, double weight_bytes, Factors factors) {
  const double in = real(shape.batch * shape.in_channels * shape.height * shape.width);
  const double out =
      real(shape.batch * shape.out_channels * shape.out_height() * shape.out_width());
  const double each = real(shape.in_channels / shape.groups * shape.kernel * shape.kernel);
  note(stream, {.kernel = kernel,
                .sizes = {shape.batch, shape.in_channels, shape.height, shape.width,
                          shape.out_channels, shape.kernel},
                .bytes = (in + out) * static_cast<double>(number) +
                         each * real(shape.out_channels) * weight_bytes,
                .operations = 2 * out * each,
                .factors = factors});
}

/// Returns the call of a product whose sums start with zeros or with `start`. `result` is the
/// number of bytes that the product writes, and reads beyond its factors, for each sum.
template <class Number>
KernelCall product_call(std::string_view kernel, const DeviceProduct<Number>& product,
                        double result, Factors factors) {
  const double rows = real(product.rows), columns = real(product.columns),
               depth = real(product.depth);
  double start = 0;
  if (product.start) start = (product.start_stride == 0 ? columns : rows * columns) * sizeof(float);
  return {
      .kernel = kernel,
      .sizes = {product.rows, product.columns, product.depth},
      .bytes = (rows * depth + depth * columns) * sizeof(Number) + start + rows * columns * result,
      .operations = 2 * rows * columns * depth,
      .factors = factors};
}

extern const TensorCoreKernels<float> tf32_kernels;
extern const TensorCoreKernels<Float16> fp16_kernels;
extern const TensorCoreKernels<BFloat16> bf16_kernels;

}  // namespace troupe::kernels::rehearsed
