#include "kernels/embedding.h"

#include <cstring>

#include "kernels/cpu/parts/pieces.h"
#include "kernels/device_kernels.h"

namespace troupe::kernels {

void embedding_forward(Stream& stream, const float* table, const std::int32_t* tokens, float* y,
                       std::int64_t rows, std::int64_t columns) {
  if (const auto* there = kernels_of(stream))
    return there->embedding_forward(stream, table, tokens, y, rows, columns);
  cpu::for_rows(stream, rows, columns, [=](std::int64_t r) {
    std::memcpy(y + r * columns, table + tokens[r] * columns,
                static_cast<std::size_t>(columns) * sizeof(float));
  });
}

void embedding_backward_weight(Stream& stream, const std::int32_t* tokens, const float* dy,
                               float* dtable, std::int64_t rows, std::int64_t columns) {
  if (const auto* there = kernels_of(stream))
    return there->embedding_backward_weight(stream, tokens, dy, dtable, rows, columns);
  // A token may occur many times, so each thread takes some columns and walks all rows.
  cpu::for_pieces(stream, columns, cpu::columns_per_piece,
                  [=](std::int64_t first, std::int64_t size) {
                    for (std::int64_t r = 0; r < rows; ++r) {
                      const float* const from = dy + r * columns + first;
                      float* const to = dtable + tokens[r] * columns + first;
                      for (std::int64_t c = 0; c < size; ++c) to[c] += from[c];
                    }
                  });
}

}  // namespace troupe::kernels
