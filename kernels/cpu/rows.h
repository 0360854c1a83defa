#pragma once

#include <cstdint>

#include "core/dtype.h"

namespace troupe::kernels::cpu {

/// to[i] = BFloat16::from(from[i]).
void round_to_bf16(const float* from, BFloat16* to, std::int64_t count);

/// sum[c] += x[0, c], then x[1, c], ...: `columns` columns of a matrix whose rows are `stride`
/// apart.
void add_rows(const float* x, std::int64_t stride, float* sum, std::int64_t rows,
              std::int64_t columns);

}  // namespace troupe::kernels::cpu
