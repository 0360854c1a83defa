#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/decide/link_waits.h"
#include "actors/decide/stragglers.h"
#include "actors/lead/round_under_way.h"
#include "actors/run_spec.h"
#include "core/value.h"

namespace troupe::actors {

/// Watches the devices of a run on nodes: makes the events `node.straggler`, and measures how long
/// nodes wait for each other. A run in one process has no nodes and is not watched: its devices
/// share the machine.
class StragglerWatch {
 public:
  /// Ends the attempt before. Returns the events that no device is known to be slow any more.
  std::vector<Value> attempt_begins(const RunSpec& spec);
  /// Starts to watch an assembled attempt.
  void begun(const RunSpec& spec);
  /// Something else than training happened after the last round.
  void interrupted() { waits_.interrupted(); }
  /// Counts the time of a step of the round.
  void step_took(std::chrono::nanoseconds time) { took_ += time; }
  /// Returns the times of a round that all devices have played; nothing if it is not watched.
  std::optional<TimedRound> times_of(const RoundUnderWay& round);
  /// Returns the waits between nodes as the event of the round's last step tells them.
  Value::List waits(const TimedRound& round);
  /// Returns the events after the round. `step`: steps done.
  std::vector<Value> add(const RunSpec& spec, const TimedRound& round, std::int64_t step);

 private:
  Value event(const RunSpec& spec, const Straggler& straggler) const;

  Stragglers stragglers_;
  LinkWaits waits_;
  std::vector<std::string> nodes_;  // Indexed by replica, then device; empty: nothing is watched.
  std::chrono::nanoseconds took_{};
  std::int64_t step_ = 0;
};

/// Returns the times of a round. Returns nothing if a device reported other actions than those of
/// its lane. (may.h has checked the times.)
std::optional<TimedRound> timed_round(const RoundUnderWay& round, std::chrono::nanoseconds took);

}  // namespace troupe::actors
