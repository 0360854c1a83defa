#pragma once

#include <cstdint>
#include <optional>

#include "core/memory/stream.h"
#include "kernels/cpu/parts/panels.h"

namespace troupe::kernels::cpu {

/// In which order bf16 terms are added. Each is that of a processor's own instruction, and any
/// other can do the same, only slower.
enum class SumOrder : std::uint8_t {
  pairs,   // Pair by pair, and in a pair the second term first: AVX-512's.
  blocks,  // So many terms of depth become a sum of their own, which is added whole: its even terms
           // in one chain from zero, its odd ones in another, then both together. AMX's.
};
constexpr std::int64_t terms_in_block = 32;

/// c[i, j] = start[i, j] + a[i, 0] b[0, j] + a[i, 1] b[1, j] + ..., each term fused into the sum so
/// far, in the order of depth, or for bf16 in its SumOrder. So the bits of c follow from this line:
/// tiles, threads and the width of vectors do not touch them.
template <class Number>
struct Product {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t depth = 0;  // At least 1.
  Matrix<Number> a;
  const float* start = nullptr;   // Null: zeros. May be c.
  std::int64_t start_stride = 0;  // From row to row; 0: all rows start with the same one.
  float* c = nullptr;
  std::int64_t c_stride = 0;
  SumOrder sums = SumOrder::pairs;  // Of bf16 only.
};

/// b in panels: as pack_panels() leaves it, or where it lies.
template <class Number>
struct Panels {
  const Unit<Number>* data = nullptr;
  std::int64_t stride = 0;            // From panel to panel,
  std::int64_t step = panel_columns;  // and in a panel from one unit of depth to the next.
};

/// A matrix as panels, where it is that already: by row, and of columns that fill their panels.
inline std::optional<Panels<float>> as_panels(const Matrix<float>& matrix, std::int64_t columns) {
  if (matrix.order == Order::by_column || columns % panel_columns != 0) return {};
  return Panels<float>{matrix.data, panel_columns, matrix.stride};
}

/// On the calling thread.
void multiply(const Product<float>& product, const Panels<float>& b);
void multiply(const Product<BFloat16>& product, const Panels<BFloat16>& b);

/// On the threads of a stream.
template <class Number>
void multiply(Stream& stream, const Product<Number>& product, const Panels<Number>& b);

/// The same with b where it lies: for a factor that is used once, which is packed block by block on
/// the way if it must be.
template <class Number>
void multiply(Stream& stream, const Product<Number>& product, const Matrix<Number>& b);

}  // namespace troupe::kernels::cpu
