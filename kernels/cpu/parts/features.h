#pragma once

namespace troupe::kernels::cpu {

/// Whether the processor multiplies pairs of bf16 numbers in one instruction.
bool has_bf16_pairs();

/// Whether it multiplies tiles of bf16 numbers, and the system lets this process use them (AMX).
bool has_bf16_tiles();

}  // namespace troupe::kernels::cpu
