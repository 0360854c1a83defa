#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "bench/child.h"
#include "cluster/process.h"
#include "core/value.h"

namespace troupe::tests {

/// A configuration with tied weights and dropout, small enough for many processes on two cores.
extern const std::string gpt;

std::vector<std::string> with(std::vector<std::string> words,
                              const std::vector<std::string>& settings);

/// Returns a run's events of this type.
std::vector<Value> events(const Workplace& here, const std::string& run, const std::string& type);
/// Returns the digest of the weights that a run saved last.
std::string digest(const Workplace& here, const std::string& run);
/// Returns the digest of a run in one process, which every other run must match.
std::string digest_of_one(const Workplace& here, const std::vector<std::string>& settings);
/// Returns how often each step was done, according to a run's events.
std::map<std::int64_t, int> times_done(const Workplace& here, const std::string& run);
/// Returns the address of the head that was last started in this folder.
std::string head_of(const Workplace& here);

/// Returns everything that a process could leave behind.
std::set<std::string> leavings(const Workplace& here);
/// Counts the program's processes in that folder, after waiting for those that are ending.
int processes_of_program(const Workplace& here);
using bench::children_of;
/// Returns the memory that a process uses now.
long resident_bytes(pid_t process);
/// Waits until a process that is not a child is gone.
bool is_gone(pid_t process, std::chrono::seconds patience = std::chrono::seconds(10));

/// Returns the arguments of a head on free ports.
std::vector<std::string> head_words(const std::vector<std::string>& more = {});

/// A head and a daemon for each name.
struct Cluster {
  const Workplace& here;
  Process head;
  std::vector<std::unique_ptr<Process>> nodes;

  Cluster(const Workplace& place, const std::vector<std::string>& names,
          const std::vector<std::string>& more = {},
          const std::vector<std::string>& more_for_head = {});
  void start_node(const std::string& name, const std::vector<std::string>& more = {});
  /// Returns the process that a daemon keeps.
  pid_t node_process(std::size_t node) const;
  /// Asks all processes to end, and waits until they have.
  void end();
};

}  // namespace troupe::tests
