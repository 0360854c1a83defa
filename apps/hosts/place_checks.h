#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/hosts/check.h"
#include "apps/hosts/interfaces.h"
#include "core/result.h"

/// Checks of a machine's surroundings: its network, clock, disk and keys. Structured like
/// machine_checks.h.
namespace troupe::apps {

/// Measures the time of a connection to this machine itself.
Result<std::chrono::nanoseconds> try_loopback();
Check judge_loopback(const Result<std::chrono::nanoseconds>& taken);

Check judge_interfaces(const std::vector<Interface>& interfaces);

struct PortFacts {
  int port = 0;
  std::optional<Error> taken;
};
PortFacts try_port(int port);
Check judge_ports(const std::vector<PortFacts>& ports);

struct ClockFacts {
  std::chrono::system_clock::time_point wall;
  std::chrono::system_clock::time_point made;  // When this program was built.
  // The difference between two reads of the monotonic clock.
  std::chrono::nanoseconds steady_step{0};
};
ClockFacts read_clock();
Check judge_clock(const ClockFacts& facts);

struct DiskFacts {
  std::string folder;      // The folder that contains runs/ or would contain it.
  std::uint64_t free = 0;  // Bytes.
  double write_rate = 0;   // Bytes per second, including the sync to disk.
};
Result<DiskFacts> try_disk(const std::string& folder);
Check judge_disk(const Result<DiskFacts>& facts);

/// Checks the named key file; `path` may be empty.
Check check_keys(const std::string& path);

}  // namespace troupe::apps
