#pragma once

#include <functional>
#include <utility>

#include "actors/caf_shim.h"
#include "actors/messages.h"

namespace troupe::actors {

/// Reports the end of a run exactly once. The supervisor does it, or, if it died, the last actor of
/// the run. All actors of the run share it.
class Ending {
 public:
  explicit Ending(std::function<void(Outcome)> ended) : ended_(std::move(ended)) {}
  Ending(const Ending&) = delete;
  Ending& operator=(const Ending&) = delete;
  ~Ending() {
    if (ended_) tell(std::move(if_supervisor_dies_));
  }

  void tell(Outcome outcome) { std::exchange(ended_, nullptr)(std::move(outcome)); }

  // Called on the supervisor's thread, or after it has ended.
  void saved(std::int64_t step) { if_supervisor_dies_.step = step; }
  void supervisor_died(const caf::error& why) {
    if_supervisor_dies_.how = Outcome::How::failed;
    if_supervisor_dies_.why = "supervisor: " + caf_shim::to_text(why);
  }

 private:
  std::function<void(Outcome)> ended_;
  Outcome if_supervisor_dies_;
};

}  // namespace troupe::actors
