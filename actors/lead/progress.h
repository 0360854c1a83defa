#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "actors/lead/round_under_way.h"
#include "actors/lead/step_ledger.h"
#include "actors/messages.h"
#include "actors/run_spec.h"
#include "core/result.h"

namespace troupe::actors {

/// The progress of a run: the steps that are done, and the current attempt's rounds in flight with
/// the reports about their steps.
class Progress {
 public:
  void run_begins(std::int64_t step) { step_ = furthest_ = step; }
  /// Switches to another plan; no round is in flight.
  void change(const RunSpec& spec);
  /// Starts an attempt without rounds in flight.
  void attempt_begins(const RunSpec& spec);
  /// Continues after this many steps.
  void go_on_after(std::int64_t step) { step_ = given_out_ = step; }

  /// Returns the steps done; before an attempt starts, those of the attempt before.
  std::int64_t step() const { return step_; }
  /// Returns the steps that are done or in flight.
  std::int64_t given_out() const { return given_out_; }
  /// Returns the most steps done by any attempt; repeated steps do not count.
  std::int64_t furthest() const { return furthest_; }
  /// Returns the rounds in flight, in the order of play.
  const std::deque<RoundUnderWay>& rounds() const { return rounds_; }

  /// Gives out a training or evaluation round.
  void give_out(Play play);
  void evaluated() { rounds_.clear(); }

  /// Checks that the device had this round to play and reports it for the first time.
  Status expects(const RoundPlayed& played) const;
  /// Adds a report that expects() accepted.
  void add(const RoundPlayed& played);
  /// Returns whether the step is in flight.
  bool is_under_way(std::int64_t step) const { return step >= step_ && step < given_out_; }
  /// The reports about steps.
  StepLedger& ledger() { return *ledger_; }
  const StepLedger& ledger() const { return *ledger_; }
  /// Returns what the next step waits for, as a text.
  std::string missing() const { return ledger_->missing(step_); }

  /// A step that is done, with its round if it is the round's last step.
  struct Done {
    StepLedger::Entry entry;
    std::optional<RoundUnderWay> round;
  };
  /// Removes and counts the next step, in order, if it is done.
  std::optional<Done> take_done();
  /// If take_done() returns nothing: returns whether the next step waits only for its devices to
  /// report the end of the round.
  bool waits_for_devices() const { return !rounds_.empty() && ledger_->complete(step_); }

  /// Returns, by replica and device, the most parcels that were in the inbox at once.
  const std::vector<std::size_t>& most_parcels() const { return most_parcels_; }

 private:
  const RoundUnderWay* find(const RoundPlayed& played) const;

  RoundPtr usual_;
  std::vector<std::size_t> most_parcels_;
  std::optional<StepLedger> ledger_;
  std::deque<RoundUnderWay> rounds_;
  std::int64_t step_ = 0;
  std::int64_t given_out_ = 0;
  std::int64_t furthest_ = 0;
};

}  // namespace troupe::actors
