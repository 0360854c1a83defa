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

/// How far a run is: the steps that are done, and of the attempt under way the rounds that are out
/// and the steps that they are about.
class Progress {
 public:
  void run_begins(std::int64_t step) { step_ = furthest_ = step; }
  /// Another plan: nothing is out.
  void change(const RunSpec& spec);
  /// An attempt begins: nothing is out, and nothing was heard.
  void attempt_begins(const RunSpec& spec);
  /// It goes on after so many steps.
  void go_on_after(std::int64_t step) { step_ = given_out_ = step; }

  /// Steps that are done; before an attempt goes on those of the one before.
  std::int64_t step() const { return step_; }
  /// Steps that are done or in rounds that are out.
  std::int64_t given_out() const { return given_out_; }
  /// The most steps that were done in any attempt. Steps that are done again do not count.
  std::int64_t furthest() const { return furthest_; }
  /// What is out, in the order in which it is played.
  const std::deque<RoundUnderWay>& rounds() const { return rounds_; }

  /// Of training or of evaluation.
  void give_out(Play play);
  void evaluated() { rounds_.clear(); }

  /// Whether the device had this round to play, and tells of it for the first time.
  Status expects(const RoundPlayed& played) const;
  /// One that is expected.
  void add(const RoundPlayed& played);
  /// Whether the step is neither done nor further than what was given out.
  bool is_under_way(std::int64_t step) const { return step >= step_ && step < given_out_; }
  /// What is heard of steps.
  StepLedger& ledger() { return *ledger_; }
  const StepLedger& ledger() const { return *ledger_; }
  /// What the next step is not done without, for a person.
  std::string missing() const { return ledger_->missing(step_); }

  /// A step that is done now, and the last one of a round with that round.
  struct Done {
    StepLedger::Entry entry;
    std::optional<RoundUnderWay> round;
  };
  /// The next one, in order, where it is; counts it.
  std::optional<Done> take_done();
  /// None is left to be taken: whether the next step is done but for its devices, which have yet to
  /// say that they are through with the round.
  bool waits_for_devices() const { return !rounds_.empty() && ledger_->complete(step_); }

  /// By device, replica after replica: what has lain there at once at most.
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
