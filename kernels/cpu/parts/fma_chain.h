#pragma once

#include <cstdint>

namespace troupe::kernels::cpu {

/// The result of a loop: its number of operations, and a number that depends on all of them, so
/// that the compiler removes none.
struct FmaChain {
  std::int64_t operations = 0;
  float result = 0;
};

/// Runs `steps` turns of a loop that adds products to enough sums to keep the processor busy.
FmaChain fma_chain_f32(std::int64_t steps);
FmaChain fma_chain_bf16(std::int64_t steps);
/// Does the same with bf16 tiles. Calls fma_chain_f32() if the processor has none.
FmaChain tile_chain(std::int64_t steps);

}  // namespace troupe::kernels::cpu
