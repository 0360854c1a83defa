#pragma once

#include <functional>
#include <utility>

#include "actors/messages.h"
#include "actors/rt.h"

namespace troupe::actors {

/// Tells how a run has ended, exactly once. Its supervisor does; where that has died, whoever of
/// the run goes last. All of the run hold it.
class Ending {
 public:
  explicit Ending(std::function<void(Outcome)> ended) : ended_(std::move(ended)) {}
  Ending(const Ending&) = delete;
  Ending& operator=(const Ending&) = delete;
  ~Ending() {
    if (ended_) tell(std::move(if_supervisor_dies_));
  }

  void tell(Outcome outcome) { std::exchange(ended_, nullptr)(std::move(outcome)); }

  // From the supervisor's thread, or once it is gone.
  void saved(std::int64_t step) { if_supervisor_dies_.step = step; }
  void supervisor_died(const caf::error& why) {
    if_supervisor_dies_.how = Outcome::How::failed;
    if_supervisor_dies_.why = "supervisor: " + rt::to_text(why);
  }

 private:
  std::function<void(Outcome)> ended_;
  Outcome if_supervisor_dies_;
};

}  // namespace troupe::actors
