#pragma once

#include <cstdint>

#include "kernels/cpu/parts/panels.h"
#include "kernels/device_kernels.h"
#include "kernels/linear.h"

/// What packed weights and their products know, with or without gelu() in them.
namespace troupe::kernels {

/// Who makes a stream's products.
enum class Maker : std::uint8_t {
  cores,             // Of weights that are packed for them.
  device,            // Of weights as they lie.
  cores_for_device,  // Operands are brought to the cores, and results are taken back.
};

inline Maker maker_of(const Stream& stream, Precision precision) {
  switch (facts_of(precision).makers) {
    case Makers::all:
      return stream.device() ? Maker::device : Maker::cores;
    case Makers::cores:
      return stream.device() ? Maker::cores_for_device : Maker::cores;
    case Makers::tensor_cores:
      return Maker::device;  // Of a rehearsal, too: it counts what a device would take.
  }
  return Maker::cores;
}

/// The weights as [inputs, outputs], however they are stored.
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
