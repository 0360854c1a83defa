#pragma once

#include "kernels/cpu/parts/product.h"

namespace troupe::kernels::cpu {

/// Computes a bf16 product with SumOrder::blocks on the calling thread. Uses AMX tiles if the
/// processor has them, else vectors; the bits are equal.
void multiply_blocks(const Product<BFloat16>& product, const Panels<BFloat16>& b);

}  // namespace troupe::kernels::cpu
