#pragma once

#include <cassert>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "core/memory/dtype.h"
#include "core/memory/memory_pool.h"
#include "core/memory/shape.h"

namespace troupe {

/// A handle to numbers on a device: copying it copies no number. Elements lie row by row without
/// gaps. A tensor's maker may write to it until it passes the tensor on; after that nobody may.
class Tensor {
 public:
  Tensor() = default;

  /// Allocates a tensor without initializing its numbers.
  static Tensor make(MemoryPool& pool, const Shape& shape, DType type = DType::f32) {
    Tensor tensor;
    tensor.block_ = pool.take(static_cast<std::size_t>(shape.count()) * bytes_of(type));
    tensor.shape_ = shape;
    tensor.type_ = type;
    return tensor;
  }

  /// Wraps numbers that already lie in a block of any owner, `offset` bytes from its beginning.
  static Tensor over(BlockHandle block, std::size_t offset, const Shape& shape, DType type) {
    Tensor tensor;
    tensor.block_ = std::move(block);
    tensor.offset_ = offset;
    tensor.shape_ = shape;
    tensor.type_ = type;
    assert(tensor.block_ && offset + tensor.bytes() <= tensor.block_.get()->bytes);
    return tensor;
  }

  bool empty() const { return !block_; }
  const Shape& shape() const { return shape_; }
  DType dtype() const { return type_; }
  std::int64_t count() const { return shape_.count(); }
  std::size_t bytes() const { return static_cast<std::size_t>(count()) * bytes_of(type_); }

  MemoryPlace place() const { return block_ ? block_.get()->place : MemoryPlace(); }

  // Returns the address of the numbers, for kernels of the tensor's place. Host code uses numbers()
  // and host_bytes().
  template <class T>
  T* data() {
    assert(type_ == dtype_of<T>);
    return static_cast<T*>(raw());
  }
  template <class T>
  const T* data() const {
    assert(type_ == dtype_of<T>);
    return static_cast<const T*>(raw());
  }
  float* f32() { return data<float>(); }
  const float* f32() const { return data<float>(); }
  void* raw() { return address(); }
  const void* raw() const { return address(); }

  /// Returns the numbers of a tensor that lies with the host.
  template <class T>
  std::span<const T> numbers() const {
    assert(place().is_host());
    return {data<T>(), static_cast<std::size_t>(count())};
  }
  template <class T>
  std::span<T> numbers() {
    assert(place().is_host());
    return {data<T>(), static_cast<std::size_t>(count())};
  }
  std::span<const std::byte> host_bytes() const {
    assert(place().is_host());
    return {static_cast<const std::byte*>(raw()), bytes()};
  }
  std::span<std::byte> host_bytes() {
    assert(place().is_host());
    return {static_cast<std::byte*>(raw()), bytes()};
  }

  /// Returns the block, or null if the tensor is empty.
  const MemoryBlock* block() const { return block_.get(); }
  /// Returns a handle that keeps the memory alive.
  const BlockHandle& holding() const { return block_; }

  /// Returns the same numbers under another shape.
  Tensor reshaped(const Shape& shape) const {
    assert(shape.count() == count());
    Tensor other = *this;
    other.shape_ = shape;
    return other;
  }
  /// Returns entries [first, first + count) of the outermost dimension; shares the memory.
  Tensor slice(std::int64_t first, std::int64_t count) const {
    assert(shape_.rank() > 0 && first >= 0 && count >= 0 && first + count <= shape_[0]);
    Tensor other = *this;
    const auto entry = shape_[0] ? bytes() / static_cast<std::size_t>(shape_[0]) : 0;
    other.offset_ += static_cast<std::size_t>(first) * entry;
    other.shape_ = Shape{count};
    for (int i = 1; i < shape_.rank(); ++i) other.shape_.append(shape_[i]);
    return other;
  }

 private:
  std::byte* address() const {
    if (!block_) return nullptr;
    if (block_.get()->taken_by != 0) DeviceWork::see(*block_.get());
    return block_.get()->memory + offset_;
  }

  BlockHandle block_;
  std::size_t offset_ = 0;
  Shape shape_;
  DType type_ = DType::f32;
};

/// A tensor with its name in the model's ecosystem: "h.0.ln_1.weight".
struct NamedTensor {
  std::string name;
  Tensor tensor;
};

}  // namespace troupe
