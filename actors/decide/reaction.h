#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/decide/run_machine.h"

namespace troupe::actors::decide {

constexpr int exit_failed = 1;

/// The reaction to one event while it is computed. Each file implements the events of one kind and
/// their helper functions.
class Reaction {
 public:
  Reaction(State state, Time now, const Limits& limits)
      : state_(std::move(state)), now_(now), limits_(limits) {}

  Answer to(const Event& event);

 private:
  // The run's start and end, and the head's own failures: reaction.cpp.

  void on(const JournalRead& read);
  void on(const SavesRead& read);
  void on(const JournalFailed& failed);
  void on(const Timeout& timeout);
  void end(End end);
  void end_failed(const std::string& why) { end(End{End::How::failed, exit_failed, why}); }
  std::string not_prepared() const;
  void row(Row row, const std::string& reason);
  void order(Order order) { answer_.orders.push_back(std::move(order)); }
  Record& record(Record::Kind kind, const std::string& why = {});
  void set_phase_timer(Duration after);

  // Nodes that join and leave, and news about nodes: nodes.cpp.

  void on(const NodeCame& came);
  void on(const NodeLost& lost);
  void on(const NodeHeard& heard);
  void on(const NodeCordoned& cordoned);
  void on(const KeptBy& kept);
  void on(const PairLost& lost);
  void come(Life life);
  void gather(const std::string& name);
  void lose(Life life, const std::string& why);
  void lose_from(Life life, const std::string& why);
  void fall_silent(Life life);
  void hear_of_keeper(const std::string& name);
  void strike(const std::string& name, const std::string& why);
  void pass_over(Life life);
  void free_passed_over();
  bool is_member(Life life) const;
  std::vector<Life> usable() const { return decide::usable(state_, now_, limits_); }
  std::string name_of(Life life) const;

  // From a plan to its attempt: attempts.cpp.

  void on(const PlanMade& made);
  void on(const Prepared& prepared);
  void on(const PrepareFailed& failed);
  void on(const Loaded& loaded);
  void on(const LoadFailed& failed);
  void prepare(PlanChoice choice, std::uint64_t attempt);
  void find_sources();
  void load();
  void give_up_attempt(const std::string& why);

  // From the end of an attempt to the next plan, or to waiting for nodes: recovery.cpp.

  void on(const AttemptEnded& ended);
  void recover();
  void leave_attempt();
  void count_attempt();
  bool ends_by_lost_path() const;
  bool are_heard(const std::pair<Life, Life>& pair) const;
  bool is_hopeless() const;
  void go_on();
  std::optional<Time> keepers_until() const;
  void plan_or_suspend();
  bool take_whoever_is_there();
  void suspend();
  void suspend_over_or_try();
  void wait_suspended();

  // Steps, saves, changes, pauses, and the end that is asked for or reached: steps.cpp and
  // boundaries.cpp.

  void on(const StepDone& done);
  void on(const StepEntered& entered);
  void on(const AtBoundary& at);
  void on(const Collected& collected);
  void on(const Saved& saved);
  void on(const SaveFailed& failed);
  void on(const ChangeAsked& asked);
  void on(const ChangesMade& made);
  void on(const SpikeFound& found);
  void on(const StepSkipped& skipped);
  void on(const StopAsked& asked);
  void on(const PauseAsked& asked);
  void on(const RunFailed& failed);
  void remember_saved(std::int64_t step);
  bool is_saved(std::int64_t step) const;
  bool wants_boundary() const;
  void hold_or_release();
  void answer_boundary();
  void end_at_boundary();

  // Failures of players and ends of processes: run_failures.cpp.

  void on(const PlayerFailed& failed);
  void fail(Row cause, const std::vector<Life>& lives, const std::string& why);
  bool others_suffice(const std::vector<Life>& lives) const;
  void judge_crash(const NodeLost& lost);

  State state_;
  Time now_;
  const Limits& limits_;
  Answer answer_;
};

}  // namespace troupe::actors::decide
