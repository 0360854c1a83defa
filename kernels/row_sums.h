#pragma once

#include <cstdint>

namespace troupe::kernels {

/// A sum over the rows of a matrix is made of pieces of so many rows: first a chain from zero
/// through each of them, then one through what they gave. So a GPU can make all pieces at once.
constexpr std::int64_t rows_in_piece = 128;

}  // namespace troupe::kernels
