#pragma once

#include <cstdint>

namespace troupe::kernels::cpu {

/// sum[c] += x[0, c], then x[1, c], ...: `columns` columns of a matrix whose rows are `stride`
/// apart.
void add_rows(const float* x, std::int64_t stride, float* sum, std::int64_t rows,
              std::int64_t columns);

}  // namespace troupe::kernels::cpu
