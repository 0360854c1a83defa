#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

#include "core/descriptor.h"
#include "core/result.h"

namespace troupe::bench {

constexpr std::size_t kib = 1024, mib = 1024 * kib;

/// How much travels, and how often in one measurement.
struct Size {
  const char* name;
  std::size_t bytes;
  int turns;
};
constexpr std::array<Size, 6> sizes = {{{"64 B", 64, 2000},
                                        {"4 KiB", 4 * kib, 1000},
                                        {"64 KiB", 64 * kib, 400},
                                        {"1 MiB", mib, 60},
                                        {"16 MiB", 16 * mib, 8},
                                        {"256 MiB", 256 * mib, 1}}};

/// Seconds that so many bytes take one way: half of there and back.
using HalfRoundTrip = std::function<Result<double>(const Size&)>;

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Each of two processes that are measured, with its threads, keeps to a core; where there is one
/// only, the system chooses.
void stay_on(std::size_t core);

/// All bytes, by a socket that blocks; false where the other end is gone.
bool write_all(int socket, const void* from, std::size_t bytes);
bool read_all(int socket, void* to, std::size_t bytes);

/// Also for processes made meanwhile, which have a copy of the descriptor: closing alone tells
/// whoever reads at the other end nothing.
void hang_up(Descriptor& socket);

}  // namespace troupe::bench
