#pragma once

namespace troupe::kernels::cpu {

/// Returns whether the processor multiplies pairs of bf16 numbers in one instruction.
bool has_bf16_pairs();

/// Returns whether the processor has bf16 tiles (AMX) and the system lets this process use them.
bool has_bf16_tiles();

}  // namespace troupe::kernels::cpu
