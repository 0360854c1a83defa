#include "kernels/instructions.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "kernels/cpu/parts/features.h"
#include "kernels/cpu/parts/targets.h"

// After targets.h, which selects the processors.
#include "hwy/highway.h"

namespace troupe::kernels {
namespace {

std::vector<Instructions> find_sets() {
  [[maybe_unused]] const std::int64_t found = hwy::SupportedTargets();
#if HWY_ARCH_ARM
  // Kernels are compiled for NEON alone there, since every arm64 processor has it.
  if (found & TROUPE_ARM_TARGETS) return {Instructions::neon};
#endif
  std::vector<Instructions> sets = {Instructions::plain};
#if HWY_ARCH_X86
  if (found & HWY_AVX2) sets.push_back(Instructions::avx2);
  if (found & HWY_AVX3) sets.push_back(Instructions::avx512);
  if (found & HWY_AVX3 && cpu::processor_has_bf16_tiles()) sets.push_back(Instructions::amx);
#endif
  return sets;
}

/// Returns Highway's targets that are not part of the set.
std::int64_t targets_without(Instructions set) {
  if (set >= Instructions::avx512) return 0;
  if (set == Instructions::avx2) return HWY_AVX3;
  if (set == Instructions::neon) return 0;
  return TROUPE_X86_TARGETS | TROUPE_ARM_TARGETS;
}

}  // namespace

const std::vector<Instructions>& instruction_sets() {
  static const auto sets = find_sets();
  return sets;
}

Instructions instructions_in_use() {
  return std::min(instruction_sets().back(), cpu::instruction_limit());
}

void use_instructions(Instructions set) {
  instruction_sets();  // Before targets are disabled, which hides them.
  cpu::limit_instructions(set);
  hwy::DisableTargets(targets_without(set));
}

Result<Instructions> find_instructions(std::string_view name) {
  std::string present;
  for (const auto set : instruction_sets()) {
    if (to_string(set) == name) return set;
    present += (present.empty() ? "" : ", ") + std::string(to_string(set));
  }
  const bool is_known = std::ranges::find(instruction_names, name) != instruction_names.end();
  return Error{"\"" + std::string(name) +
               (is_known ? "\": this processor lacks them" : "\" names no set of instructions") +
               "; use one that this processor has: " + present};
}

Status obey_instructions_variable() {
  const char* name = std::getenv(instructions_variable);
  if (!name || !*name) return Done{};
  const auto set = find_instructions(name);
  if (!set) return Error{std::string(instructions_variable) + " = " + set.error().text};
  use_instructions(*set);
  return Done{};
}

}  // namespace troupe::kernels
