#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "actors/assembled.h"
#include "actors/caf_shim.h"
#include "actors/messages.h"
#include "actors/play/recovery_points.h"

namespace troupe::actors {

/// Decides which steps' states the optimizers are asked to keep in nodes' memory (lines.h), and how
/// long in advance they are asked.
class Copies {
 public:
  /// Forgets all copies until the attempt's players are assembled.
  void attempt_begins() { recovery_points_ = {}; }
  void begun(const Assembled& assembled, caf_shim::TimePoint now);
  /// Notes the loss of a node.
  void lost(caf_shim::TimePoint now) { losses_.lost(now.time_since_epoch()); }
  /// Notes how many steps the ledger has.
  void entered(std::int64_t steps) { recovery_points_.entered(steps); }

  /// The rounds that optimizers must have left before a step, to hear of the request in time.
  std::size_t rounds_before() const { return rounds_before_; }
  /// Returns the request to the optimizers if the state after this step is to be kept.
  std::optional<KeepStep> ask(std::int64_t step, caf_shim::TimePoint now);
  /// Returns the reason if no more copies will be made in this attempt.
  std::optional<std::string> heard(const Kept& kept);

 private:
  RecoveryPoints recovery_points_;
  LossRate losses_;
  std::size_t rounds_before_ = 1;
};

}  // namespace troupe::actors
