#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace troupe::apps {

/// How much of a machine this process may use.
struct MachineShare {
  int online = 1;                    // Processors of the machine,
  int usable = 1;                    // of which the scheduler gives this process some (cpusets),
  std::optional<double> quota = {};  // and its control groups the time of so many.
  std::int64_t total_memory = 0;     // Bytes of the machine,
  std::optional<std::int64_t> memory_limit = {};  // and what its control groups allow, if less.

  /// How many threads may compute at once without waiting for each other; at least 1.
  int cores() const;
  std::int64_t memory() const { return memory_limit.value_or(total_memory); }
};

/// Reads the share of this process: affinity, and the quotas and memory limits of control groups of
/// version 1 and 2. A group is bound by all groups above it, so the least limit of them counts.
/// Tests read another /proc and /sys below `root`.
MachineShare own_machine_share(const std::string& root = "");

}  // namespace troupe::apps
