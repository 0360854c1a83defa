#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/memory/stream.h"
#include "core/memory/tensor.h"
#include "kernels/combine.h"
#include "kernels/copy.h"
#include "kernels/steps.h"

namespace troupe::models {

/// Calls f with a float or a double to match `type`. Trained tensors have one of these two types.
template <class F>
decltype(auto) with_number(DType type, F f) {
  assert(type == DType::f32 || type == DType::f64);
  return type == DType::f32 ? f(float()) : f(double());
}

inline void fill(Stream& stream, double value, Tensor& y) {
  with_number(y.dtype(), [&]<class T>(T) {
    kernels::fill(stream, static_cast<T>(value), y.data<T>(), y.count());
  });
}

inline Tensor filled(Stream& stream, const Shape& shape, DType type, double value) {
  Tensor tensor = stream.make(shape, type);
  fill(stream, value, tensor);
  return tensor;
}

/// Computes y = a x + b z. y may be x or z.
inline void combine(Stream& stream, double a, const Tensor& x, double b, const Tensor& z,
                    Tensor& y) {
  with_number(y.dtype(), [&]<class T>(T) {
    kernels::combine(stream, static_cast<T>(a), x.data<T>(), static_cast<T>(b), z.data<T>(),
                     y.data<T>(), y.count());
  });
}

/// Returns a x + b z in new memory.
inline Tensor combined(Stream& stream, double a, const Tensor& x, double b, const Tensor& z) {
  Tensor y = stream.make(x.shape(), x.dtype());
  combine(stream, a, x, b, z, y);
  return y;
}

/// Copies x into new memory of the stream, even if x lies in another memory.
inline Tensor copied(Stream& stream, const Tensor& x) {
  Tensor y = stream.make(x.shape(), x.dtype());
  stream.copy(x, y);
  return y;
}

/// Computes y *= x.
inline void multiply(Stream& stream, const Tensor& x, Tensor& y) {
  with_number(y.dtype(),
              [&]<class T>(T) { kernels::multiply(stream, x.data<T>(), y.data<T>(), y.count()); });
}

/// Computes a += b.
inline void accumulate(Stream& stream, Tensor& a, const Tensor& b) {
  with_number(a.dtype(), [&]<class T>(T) {
    kernels::accumulate(stream, a.data<T>(), b.data<T>(), a.count());
  });
}

/// Computes a += b, where an empty tensor counts as zero. `a` may keep the memory of `b`.
inline void add(Stream& stream, Tensor& a, Tensor b) {
  if (b.empty()) return;
  if (a.empty())
    a = std::move(b);
  else
    accumulate(stream, a, b);
}

/// Sums the squares of all blocks of all tensors, in order.
inline void squares_of_blocks(Stream& stream, std::span<const Tensor> tensors, double* sums) {
  while (!tensors.empty()) {
    const DType type = tensors.front().dtype();
    const auto other =
        std::ranges::find_if(tensors, [&](const Tensor& tensor) { return tensor.dtype() != type; });
    const auto alike = static_cast<std::size_t>(other - tensors.begin());
    with_number(type, [&]<class T>(T) {
      std::vector<std::span<const T>> all;
      for (const auto& tensor : tensors.first(alike))
        all.emplace_back(tensor.data<T>(), static_cast<std::size_t>(tensor.count()));
      kernels::squares_of_blocks(stream, all, sums);
    });
    for (const auto& tensor : tensors.first(alike)) sums += kernels::blocks_of_sums(tensor.count());
    tensors = tensors.subspan(alike);
  }
}

/// Returns the sum of squares of each tensor make(k), which has counts[k] elements. Frees each
/// tensor before it makes the next, and waits for the stream once.
template <class Make>
std::vector<double> sums_of_squares(Stream& stream, std::span<const std::int64_t> counts,
                                    Make make) {
  std::int64_t blocks = 0;
  for (const auto count : counts) blocks += kernels::blocks_of_sums(count);
  Tensor sums = stream.make({blocks}, DType::f64);
  double* at = sums.data<double>();
  for (std::size_t k = 0; k < counts.size(); ++k) {
    const Tensor made = make(k);
    assert(made.count() == counts[k]);
    squares_of_blocks(stream, {&made, 1}, at);
    at += kernels::blocks_of_sums(counts[k]);
  }
  Tensor here = stream.to_host(std::move(sums));
  stream.wait();
  at = here.data<double>();
  std::vector<double> found;
  for (const auto count : counts) {
    found.push_back(kernels::sum_of_blocks(at, kernels::blocks_of_sums(count)));
    at += kernels::blocks_of_sums(count);
  }
  return found;
}

}  // namespace troupe::models
