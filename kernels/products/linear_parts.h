#pragma once

#include <cassert>
#include <cstdint>

#include "kernels/cpu/parts/panels.h"
#include "kernels/cpu/parts/product.h"
#include "kernels/device_kernels.h"
#include "kernels/linear.h"

/// Shared by linear layers with and without gelu(), and by experts.
namespace troupe::kernels {

/// The processor that computes a stream's products.
enum class Maker : std::uint8_t {
  cores,             // From weights packed for them.
  device,            // From weights in their stored layout.
  cores_for_device,  // The cores, with operands copied to the host and results copied back.
};

inline Maker maker_of(const Stream& stream, Precision precision) {
  switch (facts_of(precision).makers) {
    case Makers::all:
      return stream.device() ? Maker::device : Maker::cores;
    case Makers::cores:
      return stream.device() ? Maker::cores_for_device : Maker::cores;
    case Makers::tensor_cores:
      return Maker::device;  // For a rehearsal too: it counts the memory that a device would take.
  }
  return Maker::cores;
}

/// Returns the order in which the cores add the terms of a product.
constexpr cpu::SumOrder sums_of(Precision precision) {
  return precision == Precision::bf16_blocks ? cpu::SumOrder::blocks : cpu::SumOrder::pairs;
}

/// Calls use(number) with a number of the type of a precision's factors.
template <class Use>
void with_factors(Precision precision, Use use) {
  const DType type = facts_of(precision).factors;
  if (type == DType::bf16) return use(BFloat16());
  if (type == DType::f16) return use(Float16());
  assert(type == DType::f32);
  use(0.0f);
}

/// Returns the weights as [inputs, outputs], in any stored layout.
template <class Number>
cpu::Matrix<Number> inputs_by_outputs(const LinearShape& shape, const Number* weight) {
  switch (shape.layout) {
    case WeightLayout::in_out:
      return {weight, shape.outputs, cpu::Order::by_row};
    case WeightLayout::out_in:
      return {weight, shape.inputs, cpu::Order::by_column};
  }
  return {};
}

template <class Number>
DeviceMatrix<Number> on_device(const cpu::Matrix<Number>& matrix) {
  switch (matrix.order) {
    case cpu::Order::by_row:
      return {matrix.data, matrix.stride, 1};
    case cpu::Order::by_column:
      return {matrix.data, 1, matrix.stride};
  }
  return {};
}

}  // namespace troupe::kernels
