#pragma once

#include <cstdint>

namespace troupe::kernels::cpu {

/// What a loop did: its operations, and a number that depends on all of them, so that none is left
/// out.
struct FmaChain {
  std::int64_t operations = 0;
  float result = 0;
};

/// `steps` turns of a loop that adds products to as many sums as keep the processor busy.
FmaChain fma_chain_f32(std::int64_t steps);
FmaChain fma_chain_bf16(std::int64_t steps);
/// The same with tiles of bf16, where the processor has them; elsewhere as fma_chain_f32.
FmaChain tile_chain(std::int64_t steps);

}  // namespace troupe::kernels::cpu
