#include "kernels/precision.h"

#include "kernels/cpu/parts/features.h"

namespace troupe::kernels {

Precision fastest_bf16() {
  return cpu::has_bf16_tiles() ? Precision::bf16_blocks : Precision::bf16_pairs;
}

bool has_bf16_products() { return cpu::has_bf16_tiles() || cpu::has_bf16_pairs(); }

}  // namespace troupe::kernels
