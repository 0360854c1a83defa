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

/// What a supervisor tells of its run: to a recorder, which confirms each piece once it is written
/// down.
class Chronicle {
 public:
  Chronicle(rt::Base* self, RunSpecPtr spec) : self_(self), spec_(std::move(spec)) {}

  /// Spawns the recorder, which `self` watches.
  void open();
  /// The recorder writes down what it has, and goes.
  void close() { rt::stop(recorder_); }
  bool is_open() const { return recorder_ != nullptr; }
  /// Where that was the recorder, which has ended: then it is not open any more.
  bool forget_recorder(const caf::actor_addr& who);

  Value event(transport::MessageName type) const;
  void tell(Value event);
  void tell_state(const std::string& state);
  void tell_stalled(const Standing& standing);
  void warn(const std::string& text);
  /// For the ledger, where one is kept.
  template <class Entry>
  void enter(Entry entry) {
    if (spec_->ledger) hand_over(std::move(entry));
  }
  /// Not of the run's own story: the trace is made of it.
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
