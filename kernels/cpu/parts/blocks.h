#pragma once

#include "kernels/cpu/parts/product.h"

namespace troupe::kernels::cpu {

/// What Product<BFloat16> promises of SumOrder::blocks, on the calling thread. By the tiles of AMX
/// where the processor has them, by vectors elsewhere: the bits are the same.
void multiply_blocks(const Product<BFloat16>& product, const Panels<BFloat16>& b);

}  // namespace troupe::kernels::cpu
