#include "kernels/precision.h"

#include "kernels/cpu/parts/features.h"

namespace troupe::kernels {

Precision fastest_bf16() {
  return cpu::has_bf16_tiles() ? Precision::bf16_blocks : Precision::bf16_pairs;
}

bool has_instructions_for(Precision precision) {
  if (precision == Precision::bf16_pairs) return cpu::has_bf16_pairs();
  if (precision == Precision::bf16_blocks) return cpu::has_bf16_tiles();
  return !is_on_tensor_cores(precision);
}

bool has_bf16_products() { return cpu::has_bf16_tiles() || cpu::has_bf16_pairs(); }

}  // namespace troupe::kernels
