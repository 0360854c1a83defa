#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "actors/messages.h"
#include "actors/run_spec.h"
#include "core/result.h"

namespace troupe::actors {

/// Changes of a run that wait until nothing of it is in flight and all that was done is saved; and
/// then those that have been made until a cast plays with them. Each is answered once.
class Interludes {
 public:
  bool wait() const { return !waiting_.empty(); }
  /// Refuses where too many wait already.
  void add(Interlude interlude);
  /// All that wait, in order, after so many steps, which are saved, or are not. `changed` gets each
  /// run that a change has made of the one before. Whether there was any.
  bool hold(std::int64_t step, const Status& saved, const std::function<void(RunSpecPtr)>& changed);
  /// A cast plays, from this step on.
  void play_from(std::int64_t step) { answer(step); }
  /// Nobody will.
  void run_has_ended();

 private:
  void answer(const Result<std::int64_t>& what);

  std::vector<Interlude> waiting_;
  std::vector<std::function<void(Result<std::int64_t>)>> made_;
};

}  // namespace troupe::actors
