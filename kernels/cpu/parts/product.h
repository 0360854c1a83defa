#pragma once

#include <cstdint>
#include <optional>

#include "core/memory/stream.h"
#include "kernels/cpu/parts/panels.h"

namespace troupe::kernels::cpu {

/// The order in which bf16 terms are added. Each order is that of a processor's instruction; other
/// processors can compute it too, only slower.
enum class SumOrder : std::uint8_t {
  pairs,   // Pair by pair, and in a pair the second term first: the order of AVX-512.
  blocks,  // Block by block of `terms_in_block` terms: a chain from zero for even terms, one for
           // odd terms. The sum of both is added whole: the order of AMX.
};
constexpr std::int64_t terms_in_block = 32;

/// c[i, j] = start[i, j] + a[i, 0] b[0, j] + a[i, 1] b[1, j] + ... Each term is fused into the sum
/// in the order of depth, or for bf16 in the given SumOrder. The bits of c follow from this
/// formula; tiles, threads and vector width do not change them.
template <class Number>
struct Product {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t depth = 0;  // At least 1.
  Matrix<Number> a;
  const float* start = nullptr;   // Null: zeros. May be c.
  std::int64_t start_stride = 0;  // Between rows; 0: all rows start with the same row.
  float* c = nullptr;
  std::int64_t c_stride = 0;
  SumOrder sums = SumOrder::pairs;  // For bf16 only.
};

/// The factor b in panels: packed by pack_panels(), or in its stored layout.
template <class Number>
struct Panels {
  const Unit<Number>* data = nullptr;
  std::int64_t stride = 0;            // Between panels.
  std::int64_t step = panel_columns;  // Between units of depth within a panel.
};

/// Returns a matrix as panels if its layout allows: by row, with columns that fill their panels.
inline std::optional<Panels<float>> as_panels(const Matrix<float>& matrix, std::int64_t columns) {
  if (matrix.order == Order::by_column || columns % panel_columns != 0) return {};
  return Panels<float>{matrix.data, panel_columns, matrix.stride};
}

/// Multiplies on the calling thread.
void multiply(const Product<float>& product, const Panels<float>& b);
void multiply(const Product<BFloat16>& product, const Panels<BFloat16>& b);

/// Multiplies on the calling thread with b in its stored layout. Packs b block by block if needed.
/// The memory that it takes for this depends on `most_depth`, not on the product's depth.
template <class Number>
void multiply(MemoryPool& memory, const Product<Number>& product, const Matrix<Number>& b,
              std::int64_t most_depth);

/// Multiplies on the threads of a stream.
template <class Number>
void multiply(Stream& stream, const Product<Number>& product, const Panels<Number>& b);

/// Multiplies with b in its stored layout, for a factor that is used once. Packs b block by block
/// if needed.
template <class Number>
void multiply(Stream& stream, const Product<Number>& product, const Matrix<Number>& b);

}  // namespace troupe::kernels::cpu
