#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "actors/messages.h"
#include "actors/run_spec.h"
#include "core/result.h"

namespace troupe::actors {

/// Boundary changes: changes of a run that wait until nothing is in flight and all steps are saved,
/// and those that were applied and wait until players play with them. Each is answered once.
class BoundaryChanges {
 public:
  /// Rejects the change if too many wait already; then returns false.
  bool add(BoundaryChange boundary_change);
  struct Held {
    int count = 0;             // Changes that were answered or applied.
    bool begins_anew = false;  // Some change was applied.
  };
  /// Applies all waiting changes in order, after `step` steps; `saved` tells whether the state is
  /// saved. Calls `changed` with each new run.
  Held hold(std::int64_t step, const Status& saved, const std::function<void(RunSpecPtr)>& changed);
  /// Answers the applied changes: players play with them from this step on.
  void play_from(std::int64_t step) { answer(step); }
  /// Answers all changes with an error.
  void run_has_ended();

 private:
  void answer(const Result<std::int64_t>& what);

  std::vector<BoundaryChange> waiting_;
  std::vector<std::function<void(Result<std::int64_t>)>> made_;
};

}  // namespace troupe::actors
