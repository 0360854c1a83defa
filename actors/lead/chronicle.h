#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "actors/messages.h"
#include "actors/recovery.h"
#include "actors/rt.h"
#include "actors/run_spec.h"
#include "core/value.h"
#include "transport/wire/message_types.h"

namespace troupe::actors {

/// Sends the events of a supervisor's run to a recorder, which confirms each event when it is
/// written.
class Chronicle {
 public:
  Chronicle(rt::Base* self, RunSpecPtr spec) : self_(self), spec_(std::move(spec)) {}

  /// Spawns the recorder. `self` watches it.
  void open();
  /// Lets the recorder write its events and end.
  void close() { rt::stop(recorder_); }
  bool is_open() const { return recorder_ != nullptr; }
  /// Closes the chronicle if the actor that ended is the recorder. Returns whether it was.
  bool forget_recorder(const caf::actor_addr& who);

  Value event(transport::MessageName type) const;
  void tell(Value event);
  void tell_state(const std::string& state);
  void tell_stalled(const Standing& standing);
  void warn(const std::string& text);
  /// Sends an entry for the ledger, if the run has one.
  template <class Entry>
  void enter(Entry entry) {
    if (spec_->ledger) hand_over(std::move(entry));
  }
  /// Passes on a played round for the trace; it is no event.
  void hand_on(const RoundPlayed& played);
  /// From now on the run is another one.
  void change(RunSpecPtr spec);

  /// A piece was written down.
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

  rt::Base* self_;
  RunSpecPtr spec_;
  caf::actor recorder_;
  int unconfirmed_ = 0;
};

}  // namespace troupe::actors
