#include <algorithm>
#include <utility>

#include "kernels/copy.h"
#include "kernels/on_cores.h"
#include "kernels/products/linear_parts.h"
#include "kernels/rounding.h"

namespace troupe::kernels {
namespace {

template <class Number>
Tensor packed_panels(Stream& stream, const cpu::Matrix<Number>& matrix, std::int64_t depth,
                     std::int64_t columns) {
  const std::int64_t units = cpu::units<Number>(depth), panels = cpu::panel_count(columns);
  Tensor packed = stream.make({panels, units, cpu::panel_columns * cpu::UnitOf<Number>::numbers},
                              dtype_of<Number>);
  auto* data = static_cast<cpu::Unit<Number>*>(packed.raw());
  const std::int64_t stride = units * cpu::panel_columns;
  stream.for_each(panels, [&](std::int64_t panel) {
    const std::int64_t first = panel * cpu::panel_columns;
    cpu::pack_panels(matrix.from(0, first), depth, std::min(cpu::panel_columns, columns - first),
                     data + panel * stride, stride);
  });
  return packed;
}

Tensor copy_of(Stream& stream, const float* numbers, std::int64_t count) {
  Tensor copy = stream.make({count});
  copy_rows(stream, {numbers, 0}, {copy.f32(), 0}, 1, count);
  return copy;
}

/// Rounds numbers and returns them in the type of factors.
Tensor factors_of(Stream& stream, const float* numbers, std::int64_t count, Precision precision) {
  const auto& facts = facts_of(precision);
  return as_type(stream, rounded(stream, numbers, {count}, facts.operands), facts.factors);
}

}  // namespace

PackedLinear::PackedLinear(Stream& stream, const LinearShape& shape, const float* weight)
    : shape_(shape) {
  const std::int64_t count = shape.inputs * shape.outputs;
  const bool are_rounded = facts_of(shape.precision).operands != DType::f32;
  const auto pack_both = [&](const auto* numbers) {
    const auto w = inputs_by_outputs(shape, numbers);
    forward_ = packed_panels(stream, w, shape.inputs, shape.outputs);
    backward_ = packed_panels(stream, w.transposed(), shape.outputs, shape.inputs);
  };
  switch (maker_of(stream, shape.precision)) {
    case Maker::cores_for_device: {
      OnCores on(stream);
      *this = PackedLinear(on.cores(), shape, on.in(weight, count));
      return;
    }
    case Maker::device:
      // Copy in any case: the caller may soon write to the weights.
      forward_ = backward_ = are_rounded ? factors_of(stream, weight, count, shape.precision)
                                         : copy_of(stream, weight, count);
      return;
    case Maker::cores: {
      Tensor factors;
      if (are_rounded) factors = factors_of(stream, weight, count, shape.precision);
      if (factors.dtype() == DType::bf16)
        pack_both(factors.data<BFloat16>());
      else
        pack_both(are_rounded ? factors.f32() : weight);
      return;
    }
  }
}

}  // namespace troupe::kernels
