#pragma once

#include <cstdint>

namespace troupe::kernels {

/// The rows in a piece of a sum over the rows of a matrix. One chain from zero adds up each piece,
/// and a last chain adds up the pieces. So a GPU can compute all pieces at once.
constexpr std::int64_t rows_in_piece = 128;

}  // namespace troupe::kernels
