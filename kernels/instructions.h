#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace troupe::kernels {

/// A set of vector instructions that kernels are made for. On x86-64 each set contains the ones
/// before it: avx512 includes the bf16 products of AVX512-BF16 if the processor has them, and amx
/// adds bf16 tiles. neon is the only set of arm64. plain computes without vectors, and is slow.
enum class Instructions : std::uint8_t { plain, neon, avx2, avx512, amx };

constexpr std::array<std::string_view, 5> instruction_names{"plain", "neon", "avx2", "avx512",
                                                            "amx"};

constexpr std::string_view to_string(Instructions set) {
  return instruction_names[static_cast<std::size_t>(set)];
}

/// Returns the sets that this processor has, the smallest first, whatever kernels are told to use.
const std::vector<Instructions>& instruction_sets();

/// Returns the set that kernels use: the largest that the processor has, unless limited.
Instructions instructions_in_use();

/// Makes all kernels of this process use this set. Must not run while a kernel does. A precision
/// gives the same bits with every set.
void use_instructions(Instructions set);

/// Returns the set with this name. The error says which sets the processor has.
Result<Instructions> find_instructions(std::string_view name);

/// The environment variable that names the set which a program uses.
constexpr const char* instructions_variable = "TROUPE_ISA";

/// Makes all kernels of this process use the set that TROUPE_ISA names, if it is set. A program
/// calls it before it starts threads.
Status obey_instructions_variable();

}  // namespace troupe::kernels
