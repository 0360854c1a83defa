#pragma once

#include <cstdint>

#include "core/memory/stream.h"

namespace troupe::kernels {

/// y[r] = table[tokens[r]]. Tokens must lie within the table.
void embedding_forward(Stream& stream, const float* table, const std::int32_t* tokens, float* y,
                       std::int64_t rows, std::int64_t columns);
/// dtable[tokens[r]] += dy[r], in the order of the rows.
void embedding_backward_weight(Stream& stream, const std::int32_t* tokens, const float* dy,
                               float* dtable, std::int64_t rows, std::int64_t columns);

}  // namespace troupe::kernels
