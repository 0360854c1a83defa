#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "actors/assembled.h"
#include "actors/messages.h"
#include "actors/play/lines.h"
#include "actors/rt.h"

namespace troupe::actors {

/// The copies of a run's states in the memory of nodes, from one attempt to the next: which step
/// the optimizers are asked to keep (lines.h), and how long before it is done they are asked.
class Copies {
 public:
  /// There are none until its players are there.
  void attempt_begins() { lines_ = {}; }
  void begun(const Assembled& assembled, rt::TimePoint now);
  /// A node was lost.
  void lost(rt::TimePoint now) { losses_.lost(now.time_since_epoch()); }
  /// The ledger has so many steps.
  void entered(std::int64_t steps) { lines_.entered(steps); }

  /// Who is asked for a step must have so many rounds to play before it, to hear of it in time.
  std::size_t rounds_before() const { return rounds_before_; }
  /// What optimizers are told, where that step's state is to be kept next.
  std::optional<KeepStep> ask(std::int64_t step, rt::TimePoint now);
  /// Why there are no more copies in this attempt; nothing where there are.
  std::optional<std::string> heard(const Kept& kept);

 private:
  Lines lines_;
  LossRate losses_;
  std::size_t rounds_before_ = 1;
};

}  // namespace troupe::actors
