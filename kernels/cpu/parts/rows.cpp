#include "kernels/cpu/parts/rows.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "kernels/cpu/parts/targets.h"
#include "kernels/row_sums.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/parts/rows.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace troupe::kernels::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;

/// Adds in the order of the rows.
void add_matrix_rows(const float* x, std::int64_t stride, float* sum, std::int64_t rows,
                     std::int64_t columns) {
  const Floats floats;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(floats));
  // Four rows at a time, so that sums are loaded and stored a quarter as often.
  for (std::int64_t r = 0; r < rows; r += 4) {
    const std::int64_t together = std::min<std::int64_t>(4, rows - r);
    const float* row = x + r * stride;
    std::int64_t c = 0;
    for (; c + lanes <= columns; c += lanes) {
      auto total = hn::LoadU(floats, sum + c);
      for (std::int64_t i = 0; i < together; ++i)
        total = hn::Add(total, hn::LoadU(floats, row + i * stride + c));
      hn::StoreU(total, floats, sum + c);
    }
    for (; c < columns; ++c)
      for (std::int64_t i = 0; i < together; ++i) sum[c] += row[i * stride + c];
  }
}

}  // namespace
}  // namespace troupe::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace troupe::kernels::cpu {

HWY_EXPORT(add_matrix_rows);

void add_rows(const float* x, std::int64_t stride, float* sum, std::int64_t rows,
              std::int64_t columns) {
  assert(columns <= columns_at_once);
  std::array<float, columns_at_once> total = {}, piece;
  for (std::int64_t first = 0; first < rows; first += rows_in_piece) {
    piece.fill(0);
    HWY_DYNAMIC_DISPATCH(add_matrix_rows)
    (x + first * stride, stride, piece.data(), std::min(rows_in_piece, rows - first), columns);
    HWY_DYNAMIC_DISPATCH(add_matrix_rows)(piece.data(), 0, total.data(), 1, columns);
  }
  HWY_DYNAMIC_DISPATCH(add_matrix_rows)(total.data(), 0, sum, 1, columns);
}

}  // namespace troupe::kernels::cpu
#endif
