#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "actors/caf_shim.h"
#include "actors/messages.h"
#include "actors/run_spec.h"
#include "actors/standstill.h"
#include "core/value.h"
#include "transport/wire/message_types.h"

namespace troupe::actors {

/// The supervisor's reports about its run. They go to a recorder, which confirms each one when it
/// is written.
class RunReporter {
 public:
  RunReporter(caf_shim::Base* self, RunSpecPtr spec) : self_(self), spec_(std::move(spec)) {}

  /// Spawns the recorder. `self` watches it.
  void open();
  /// Makes the recorder write what it has, and end.
  void close() { caf_shim::stop(recorder_); }
  bool is_open() const { return recorder_ != nullptr; }
  /// Returns whether `who`, which has ended, was the recorder. Then the chronicle is closed.
  bool forget_recorder(const caf::actor_addr& who);

  Value event(transport::MessageName type) const;
  void tell(Value event);
  void tell_state(const std::string& state);
  void tell_stalled(const Standing& standing);
  void warn(const std::string& text);
  /// Reports an entry for the ledger, if there is one.
  template <class Entry>
  void enter(Entry entry) {
    if (spec_->ledger) hand_over(std::move(entry));
  }
  /// Passes on a played round, from which the trace is made. It is no event of the run.
  void hand_on(const RoundPlayed& played);
  /// Continues with a changed run.
  void change(RunSpecPtr spec);

  /// Notes that the recorder has written a report.
  void confirmed() { --unconfirmed_; }
  bool is_confirmed() const { return unconfirmed_ == 0; }
  bool has_room() const { return unconfirmed_ < spec_->most_unrecorded; }

 private:
  template <class Piece>
  void hand_over(Piece piece) {
    if (!recorder_) return;
    ++unconfirmed_;
    self_->tell(recorder_, std::move(piece));
  }

  caf_shim::Base* self_;
  RunSpecPtr spec_;
  caf::actor recorder_;
  int unconfirmed_ = 0;
};

}  // namespace troupe::actors
