#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "actors/messages.h"
#include "actors/round_under_way.h"
#include "actors/run_spec.h"
#include "actors/step_ledger.h"

namespace troupe::actors {

/// How far a run is: the steps that are done, and of the attempt under way the rounds that are out
/// and the steps that they are about.
class Progress {
 public:
  void run_begins(std::int64_t step) { step_ = step; }
  /// Another plan: nothing is out.
  void change(const RunSpec& spec);
  /// An attempt begins: nothing is out, and nothing was heard.
  void attempt_begins(const RunSpec& spec);
  /// It goes on after so many steps.
  void go_on_after(std::int64_t step) { step_ = given_out_ = from_ = step; }

  /// Steps that are done; before an attempt goes on those of the one before.
  std::int64_t step() const { return step_; }
  /// Steps that are done or in rounds that are out.
  std::int64_t given_out() const { return given_out_; }
  bool has_attempt_done_steps() const { return step_ > from_; }
  /// What is out, in the order in which it is played.
  const std::deque<RoundUnderWay>& rounds() const { return rounds_; }

  /// Of training or of evaluation.
  void give_out(Play play);
  void evaluated() { rounds_.clear(); }

  void add(const RoundPlayed& played);
  /// What is heard of steps.
  StepLedger& ledger() { return *ledger_; }
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
  RoundPtr usual_;
  std::vector<std::size_t> most_parcels_;
  std::optional<StepLedger> ledger_;
  std::deque<RoundUnderWay> rounds_;
  std::int64_t from_ = 0;  // Steps that were done when the attempt began.
  std::int64_t step_ = 0;
  std::int64_t given_out_ = 0;
};

}  // namespace troupe::actors
