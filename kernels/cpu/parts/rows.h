#pragma once

#include <cstdint>

namespace troupe::kernels::cpu {

/// sum[c] += the sum over rows of x[r, c], in the order of kernels/row_sums.h, for at most
/// `columns_at_once` columns of a matrix. Its rows are `stride` elements apart.
constexpr std::int64_t columns_at_once = 512;
void add_rows(const float* x, std::int64_t stride, float* sum, std::int64_t rows,
              std::int64_t columns);

}  // namespace troupe::kernels::cpu
