#pragma once

#include "kernels/instructions.h"

namespace troupe::kernels::cpu {

/// Makes kernels use this set at most. kernels::use_instructions() calls it.
void limit_instructions(Instructions set);
/// Returns the largest set that kernels may use, whether or not the processor has it.
Instructions instruction_limit();

/// Returns whether kernels may multiply pairs of bf16 numbers in one instruction.
bool has_bf16_pairs();

/// Returns whether kernels may use bf16 tiles (AMX).
bool has_bf16_tiles();
/// Returns whether the processor has bf16 tiles and the system lets this process use them.
bool processor_has_bf16_tiles();

/// Returns whether products read factors in place whose neighbours in depth are far apart, instead
/// of copying them side by side. Such rows share few sets of the first cache. On an AMD EPYC (Zen
/// 5) reading in place was 4 % faster, on an Intel Xeon up to four times slower.
bool reads_distant_rows_in_place();
/// Chooses the other way on any processor. The bits are the same.
void read_distant_rows_in_place(bool in_place);

}  // namespace troupe::kernels::cpu
