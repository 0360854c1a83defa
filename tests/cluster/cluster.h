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

/// Tied weights and dropout; small enough for many processes on two cores.
extern const std::string gpt;

std::vector<std::string> with(std::vector<std::string> words,
                              const std::vector<std::string>& settings);

/// What was told of a run, of this type.
std::vector<Value> events(const Workplace& here, const std::string& run, const std::string& type);
/// Of the weights that a run has saved last.
std::string digest(const Workplace& here, const std::string& run);
/// Of a run in one process: what all others must have.
std::string digest_of_one(const Workplace& here, const std::vector<std::string>& settings);
/// How often each step was done, as a run's events tell.
std::map<std::int64_t, int> times_done(const Workplace& here, const std::string& run);
/// The address of the head that was started last there.
std::string head_of(const Workplace& here);

/// What is there that a process could leave behind.
std::set<std::string> leavings(const Workplace& here);
/// Processes of the program in that folder, once those that are about to end have ended.
int processes_of_program(const Workplace& here);
using bench::children_of;
/// The memory that a process has now.
long resident_bytes(pid_t process);
/// Waits until a process that is not ours to wait for is no more.
bool is_gone(pid_t process, std::chrono::seconds patience = std::chrono::seconds(10));

/// How a head is started on addresses that nobody else has.
std::vector<std::string> head_words(const std::vector<std::string>& more = {});

/// A head, and a daemon for each name.
struct Cluster {
  const Workplace& here;
  Process head;
  std::vector<std::unique_ptr<Process>> nodes;

  Cluster(const Workplace& place, const std::vector<std::string>& names,
          const std::vector<std::string>& more = {},
          const std::vector<std::string>& more_for_head = {});
  void start_node(const std::string& name, const std::vector<std::string>& more = {});
  /// The process that a daemon keeps.
  pid_t node_process(std::size_t node) const;
  /// Asks all to end, and waits until they have.
  void end();
};

}  // namespace troupe::tests
