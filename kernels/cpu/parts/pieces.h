#pragma once

#include <algorithm>
#include <cstdint>

#include "core/memory/stream.h"

namespace troupe::kernels::cpu {

/// The elements that a thread takes at once: enough to pay for the hand-over, few enough to share.
constexpr std::int64_t elements_per_piece = 16384;

/// The columns that a thread takes at once when it sums columns: a few cache lines of each row.
constexpr std::int64_t columns_per_piece = 64;

/// Calls body(first, size) for pieces of `grain` that cover [0, count), on the stream's threads.
template <class Body>
void for_pieces(Stream& stream, std::int64_t count, std::int64_t grain, Body body) {
  stream.for_each((count + grain - 1) / grain, [&](std::int64_t piece) {
    const std::int64_t first = piece * grain;
    body(first, std::min(grain, count - first));
  });
}

template <class Body>
void for_elements(Stream& stream, std::int64_t count, Body body) {
  for_pieces(stream, count, elements_per_piece, body);
}

/// Calls body(row) for each row. Rows of `columns` elements are grouped into pieces.
template <class Body>
void for_rows(Stream& stream, std::int64_t rows, std::int64_t columns, Body body) {
  const std::int64_t rows_per_piece =
      std::max<std::int64_t>(1, elements_per_piece / std::max<std::int64_t>(1, columns));
  for_pieces(stream, rows, rows_per_piece, [&](std::int64_t first, std::int64_t size) {
    for (std::int64_t row = first; row < first + size; ++row) body(row);
  });
}

}  // namespace troupe::kernels::cpu
