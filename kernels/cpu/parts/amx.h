#pragma once

#include <cstdint>

#include "kernels/cpu/parts/panels.h"

/// The AMX instructions that products need, for the tile registers. Written in assembler, since a
/// compiler offers the intrinsics only in files compiled for such processors.
namespace troupe::kernels::cpu::amx {

/// The rows of a tile, and the pairs or floats in each row.
constexpr std::int64_t tile_size = 16;

#if defined(__x86_64__)

/// The thread's tile registers, configured with full size and released by the destructor.
class Registers {
 public:
  Registers() {
    struct alignas(64) {
      std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
      std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
      std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
    } const shape;
    asm volatile("ldtilecfg %0" ::"m"(shape));
  }
  ~Registers() { asm volatile("tilerelease"); }
  Registers(const Registers&) = delete;
  Registers& operator=(const Registers&) = delete;
};

/// Loads a tile. `stride` is in bytes from row to row; 0 fills the tile with one row.
template <int tile>
inline void load(const void* from, std::int64_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride), "i"(tile) : "memory");
}
template <int tile>
inline void store(void* to, std::int64_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(stride), "i"(tile) : "memory");
}
template <int tile>
inline void clear() {
  asm volatile("tilezero %%tmm%c0" ::"i"(tile));
}
/// sum += a b. A row of b holds one pair of each column.
template <int sum, int a, int b>
inline void add_product() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(sum), "i"(a), "i"(b));
}

#endif

}  // namespace troupe::kernels::cpu::amx
