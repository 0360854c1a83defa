#pragma once

#include <string>
#include <utility>
#include <vector>

#include "schedules/check/check.h"
#include "schedules/check/pass_table.h"
#include "schedules/check/wait_graph.h"

/// The rules one by one; check() knows which of them may be asked when.
namespace troupe::schedules {

/// Gathers what is wrong, up to a bound.
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

/// False where other rules cannot even be asked: routes that lead nowhere, numbers out of range.
bool check_shape(const Schedule& schedule, Findings& findings);
void check_placement(const Schedule& schedule, Findings& findings);
void check_completeness(const Schedule& schedule, Findings& findings);
void check_updates(const Schedule& schedule, Findings& findings);

/// These ask for a schedule with every pass once, on its device.
void check_local_order(const Schedule& schedule, const PassTable& passes, Findings& findings);
void check_acyclic(const Schedule& schedule, const PassTable& passes, Findings& findings);
void check_memory(const Schedule& schedule, const MemoryBudget& budget, Findings& findings);

/// These ask for one that obeys V1 to V4.
void check_buffers(const Schedule& schedule, const PassTable& passes, Buffers buffers,
                   Findings& findings);
void check_streams(const Schedule& schedule, const PassTable& passes, Streams streams,
                   Findings& findings);
void check_versions(const Schedule& schedule, const VersionLimits& limits, Findings& findings);

/// The lanes as a graph, groups as one node, and what each pass needs.
WaitGraph pass_graph(const Schedule& schedule, const PassTable& passes);

}  // namespace troupe::schedules
