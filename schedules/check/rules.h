#pragma once

#include <string>
#include <utility>
#include <vector>

#include "schedules/check/check.h"
#include "schedules/check/pass_table.h"
#include "schedules/check/wait_graph.h"

/// The rules one by one. check() knows the order in which they may run.
namespace troupe::schedules {

/// A list of violations that stops growing at a bound.
class Findings {
 public:
  void add(Rule rule, int device, std::size_t position, std::string reason,
           std::size_t length = 1) {
    if (!full())
      violations_.push_back(
          {rule, device, static_cast<int>(position), static_cast<int>(length), std::move(reason)});
  }
  bool full() const { return violations_.size() >= max_violations; }
  bool empty() const { return violations_.empty(); }
  std::vector<Violation> take() && { return std::move(violations_); }

 private:
  std::vector<Violation> violations_;
};

/// Returns false if no other rule can run: invalid routes or numbers out of range.
bool check_shape(const Schedule& schedule, Findings& findings);
void check_placement(const Schedule& schedule, Findings& findings);
void check_completeness(const Schedule& schedule, Findings& findings);
void check_updates(const Schedule& schedule, Findings& findings);

/// These require a schedule with every pass exactly once and on its device.
void check_local_order(const Schedule& schedule, const PassTable& passes, Findings& findings);
void check_acyclic(const Schedule& schedule, const PassTable& passes, Findings& findings);
void check_memory(const Schedule& schedule, const MemoryBudget& budget, Findings& findings);

/// These require a schedule that obeys V1 to V4.
void check_buffers(const Schedule& schedule, const PassTable& passes, Buffers buffers,
                   Findings& findings);
void check_streams(const Schedule& schedule, const PassTable& passes, Streams streams,
                   Findings& findings);
void check_versions(const Schedule& schedule, const VersionLimits& limits, Findings& findings);

/// Builds the graph of lanes (a group is one node) and data dependencies.
WaitGraph pass_graph(const Schedule& schedule, const PassTable& passes);

}  // namespace troupe::schedules
