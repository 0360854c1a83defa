#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/nodes/node_messages.h"
#include "apps/unit_times.h"
#include "core/threads/thread_stacks.h"

namespace troupe::apps {

/// The machine and the process that a program runs in. Main functions read them
/// (apps/real/read_host.h).
struct HostFacts {
  std::string host;                       // The name of the machine.
  int process = 0;                        // The id of the process.
  int cores = 1;                          // The cores that the process may use,
  std::int64_t memory = 0;                // and the bytes.
  int numa_nodes = 1;                     // NUMA nodes of the machine.
  std::string precision;                  // The best precision that the cores compute in.
  std::vector<actors::Network> networks;  // Networks that lead to other machines.
  std::vector<std::string> command;       // The words of the process' command line.
  std::string folder;                     // The working folder.
  /// Returns where the threads of the process are; null if that cannot be known.
  std::vector<ThreadStack> (*thread_stacks)() = nullptr;
  /// Returns the times of a model's units on a nominal device, as the machine foretells them; null
  /// if it cannot be measured.
  std::vector<UnitTimes> (*unit_times)(const MeasuredModel& measured) = nullptr;

  /// Describes the process: "process 4711 on alpha".
  std::string process_text() const { return "process " + std::to_string(process) + " on " + host; }
};

}  // namespace troupe::apps
