#include "kernels/cpu/parts/panels.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "kernels/cpu/parts/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/parts/panels.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/parts/pairs-inl.h"
#include "kernels/cpu/parts/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::kernels::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr std::int64_t word_bytes = 4;
constexpr std::int64_t panel_bytes = panel_columns * word_bytes;  // One unit of depth of a panel.

/// Copies at most one row of a panel. Calling memcpy would take as long as the copy.
HWY_INLINE void copy_row(const float* from, std::int64_t columns, float* to) {
  const hn::CappedTag<float, panel_columns> floats;
  constexpr std::int64_t lanes = hn::MaxLanes(floats);
  if (columns == panel_columns) {
#pragma GCC unroll 32
    for (std::int64_t j = 0; j < panel_columns; j += lanes)
      hn::StoreU(hn::LoadU(floats, from + j), floats, to + j);
  } else {
    std::copy_n(from, columns, to);
  }
}

void pack_panel(const Matrix<float>& m, std::int64_t depth, std::int64_t columns, float* panel) {
  switch (m.order) {
    case Order::by_column:
      return transpose(m.data, m.stride * word_bytes, depth, columns, panel, panel_bytes);
    case Order::by_row:
      for (std::int64_t k = 0; k < depth; ++k)
        copy_row(m.data + k * m.stride, columns, panel + k * panel_columns);
  }
}

void pack_panel(const Matrix<BFloat16>& m, std::int64_t depth, std::int64_t columns,
                Bf16Pair* panel) {
  const std::int64_t pairs = depth / 2;
  switch (m.order) {
    case Order::by_column:
      transpose(m.data, m.stride * 2, pairs, columns, panel, panel_bytes);
      break;
    case Order::by_row:
      for (std::int64_t k = 0; k < pairs; ++k)
        interleave(m.from(2 * k, 0).data, m.from(2 * k + 1, 0).data, columns,
                   panel + k * panel_columns);
  }
  if (depth % 2 != 0)
    for (std::int64_t j = 0; j < columns; ++j)
      panel[pairs * panel_columns + j] = pair(*m.from(depth - 1, j).data, BFloat16{});
}

template <class Number>
void pack(const Matrix<Number>& m, std::int64_t depth, std::int64_t columns, Unit<Number>* panels,
          std::int64_t panel_stride) {
  for (std::int64_t j = 0; j < columns; j += panel_columns) {
    Unit<Number>* panel = panels + j / panel_columns * panel_stride;
    if (j + panel_columns <= columns) {
      pack_panel(m.from(0, j), depth, panel_columns, panel);
    } else {
      std::fill_n(panel, units<Number>(depth) * panel_columns, Unit<Number>{});
      pack_panel(m.from(0, j), depth, columns - j, panel);
    }
  }
}

void pack_f32(const Matrix<float>& m, std::int64_t depth, std::int64_t columns, float* panels,
              std::int64_t panel_stride) {
  pack(m, depth, columns, panels, panel_stride);
}
void pack_bf16(const Matrix<BFloat16>& m, std::int64_t depth, std::int64_t columns,
               Bf16Pair* panels, std::int64_t panel_stride) {
  pack(m, depth, columns, panels, panel_stride);
}

}  // namespace
}  // namespace troupe::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace troupe::kernels::cpu {

HWY_EXPORT(pack_f32);
HWY_EXPORT(pack_bf16);

void pack_panels(const Matrix<float>& matrix, std::int64_t depth, std::int64_t columns,
                 float* panels, std::int64_t panel_stride) {
  HWY_DYNAMIC_DISPATCH(pack_f32)(matrix, depth, columns, panels, panel_stride);
}
void pack_panels(const Matrix<BFloat16>& matrix, std::int64_t depth, std::int64_t columns,
                 Bf16Pair* panels, std::int64_t panel_stride) {
  HWY_DYNAMIC_DISPATCH(pack_bf16)(matrix, depth, columns, panels, panel_stride);
}

}  // namespace troupe::kernels::cpu
#endif
