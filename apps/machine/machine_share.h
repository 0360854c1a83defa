#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace troupe::apps {

/// How much of a machine this process may use.
struct MachineShare {
  int online = 1;                    // Processors of the machine.
  int usable = 1;                    // Processors that the scheduler allows this process (cpusets).
  std::optional<double> quota = {};  // Processor time that control groups allow, in processors.
  std::int64_t total_memory = 0;     // Bytes of the machine.
  std::optional<std::int64_t> memory_limit = {};  // Bytes that control groups allow, if fewer.

  /// Returns how many threads can compute at once without waiting for each other; at least 1.
  int cores() const;
  std::int64_t memory() const { return memory_limit.value_or(total_memory); }
};

/// Reads the share of this process: its affinity, and the quotas and memory limits of control
/// groups, versions 1 and 2. All ancestors of a group limit it, so the smallest limit counts. Tests
/// pass a `root` with their own /proc and /sys below it.
MachineShare own_machine_share(const std::string& root = "");

/// How much of its share is in use, by whatever programs.
struct MachineUse {
  // Since the machine began, over the processors that this process may use, in ticks.
  std::int64_t busy_ticks = 0, all_ticks = 0;
  std::optional<std::int64_t> memory = {};  // Bytes, without caches that give way.
};

/// Reads what is in use now. If a control group limits the memory, that of the group counts.
MachineUse use_of_machine(const std::string& root = "");

}  // namespace troupe::apps
