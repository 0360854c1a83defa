#include "kernels/cpu/parts/features.h"

#include <atomic>

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace troupe::kernels::cpu {
namespace {

std::atomic<Instructions> limit = Instructions::amx;

#if defined(__x86_64__)
std::atomic<bool> reads_in_place = __builtin_cpu_is("amd") != 0;
#else
std::atomic<bool> reads_in_place = false;
#endif

}  // namespace

void limit_instructions(Instructions set) { limit = set; }
Instructions instruction_limit() { return limit; }

#if defined(__x86_64__)
bool has_bf16_pairs() {
  return limit.load(std::memory_order_relaxed) >= Instructions::avx512 &&
         __builtin_cpu_supports("avx512bf16");
}
#else
bool has_bf16_pairs() { return false; }
#endif

bool reads_distant_rows_in_place() { return reads_in_place.load(std::memory_order_relaxed); }
void read_distant_rows_in_place(bool in_place) { reads_in_place = in_place; }

#if defined(__x86_64__) && defined(__linux__)
namespace {

/// Asks the system for permission to use tiles, once per process: they add 8 KiB to the state that
/// it saves for each thread.
bool ask_for_tiles() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned bf16 = 1u << 22, tiles = 1u << 24;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & (bf16 | tiles)) != (bf16 | tiles))
    return false;
  constexpr long request_permission = 0x1023, tile_data = 18;
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}

}  // namespace

bool processor_has_bf16_tiles() {
  static const bool they_are_ours = ask_for_tiles();
  return they_are_ours;
}
#else
bool processor_has_bf16_tiles() { return false; }
#endif

bool has_bf16_tiles() {
  return limit.load(std::memory_order_relaxed) >= Instructions::amx && processor_has_bf16_tiles();
}

}  // namespace troupe::kernels::cpu
