#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/hosts/check.h"
#include "apps/hosts/interfaces.h"
#include "core/result.h"

/// Where a machine stands: its network, clock and disk, and who it is. As machine_checks.h.
namespace troupe::apps {

/// How long a connection to this machine itself takes.
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
  std::chrono::nanoseconds steady_step{0};     // Between two looks at the clock that never is set.
};
ClockFacts read_clock();
Check judge_clock(const ClockFacts& facts);

struct DiskFacts {
  std::string folder;      // The one where runs/ is or would be.
  std::uint64_t free = 0;  // Bytes.
  double write_rate = 0;   // Bytes a second, until they are on the disk.
};
Result<DiskFacts> try_disk(const std::string& folder);
Check judge_disk(const Result<DiskFacts>& facts);

/// Of the key file that was named; `path` may be empty.
Check check_keys(const std::string& path);

}  // namespace troupe::apps
