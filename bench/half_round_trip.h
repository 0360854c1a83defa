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

/// The bytes of one transfer, and the round trips of one measurement.
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

/// Measures the seconds that so many bytes take one way: half of a round trip.
using HalfRoundTrip = std::function<Result<double>(const Size&)>;

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Pins the calling thread, and threads it starts later, to a core. Each of the two measured
/// processes has a core of its own. Does nothing on a single core.
void stay_on(std::size_t core);

/// Transfers all bytes over a blocking socket. Returns false if the other end is gone.
bool write_all(int socket, const void* from, std::size_t bytes);
bool read_all(int socket, void* to, std::size_t bytes);

/// Shuts down the connection and closes the socket. Closing alone would not end it: forked
/// processes hold copies of the descriptor.
void hang_up(Descriptor& socket);

}  // namespace troupe::bench
