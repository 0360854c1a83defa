#pragma once

namespace troupe::kernels::cpu {

/// Whether the processor multiplies pairs of bf16 numbers in one instruction.
inline bool has_bf16_instructions() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

}  // namespace troupe::kernels::cpu
