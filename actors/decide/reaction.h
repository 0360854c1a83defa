#pragma once

#include <optional>
#include <string>
#include <vector>

#include "actors/decide/reconciler.h"

namespace troupe::actors::reconciler {

constexpr int exit_failed = 1;
constexpr int exit_preempted = 75;

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
  void on(const StopAsked&);
  void on(const JournalFailed& failed);
  void on(const Deposed& deposed);
  void on(const Timeout& timeout);
  void end(int code, Phase phase, const std::string& why);
  void row(Row row, const std::string& reason);
  void order(Order order) { answer_.orders.push_back(std::move(order)); }
  Record& record(Record::Kind kind, const std::string& why = {});
  void set_phase_timer(Duration after);

  // Nodes that join and leave, and news about nodes: reaction_nodes.cpp.

  void on(const Attached& attached);
  void on(const Lost& lost);
  void on(const KeptBy& kept);
  void on(const PairLost& lost);
  void on(const Suspected& suspected);
  void on(const Slow& slow);
  void on(const Notice& notice);
  void on(const DrainAsked& asked);
  void gather(const std::string& name, bool plays);
  void break_what_was_played();
  void lose(Life life, const std::string& why);
  void lose_from(Life life, const std::string& why);
  void fall_silent(Life life);
  void hear_of_keeper(const std::string& name);
  void strike(const std::string& name, const std::string& why);
  void set_aside(Life life);
  void free_passed_over();
  void release_idle();
  bool is_member(Life life) const;
  std::vector<Life> usable() const { return reconciler::usable(state_, now_, limits_); }
  std::vector<Life> everybody() const;
  std::string name_of(Life life) const;

  // From a plan to its activation: reaction_epochs.cpp.

  void on(const PlanMade& made);
  void on(const Prepared& prepared);
  void on(const PrepareFailed& failed);
  void on(const Loaded& loaded);
  void on(const LoadFailed& failed);
  void prepare(PlanChoice choice, std::uint64_t attempt = 0);
  void find_sources();
  void load();
  void activate();
  void consider_switch();
  void give_up_epoch(const std::string& why);
  void pass_over(const std::vector<Life>& failed, const std::string& why);
  std::vector<Life> odd_readers() const;

  // From a loss to the next plan, or to waiting for nodes: reaction_recovery.cpp.

  void on(const Frozen& frozen);
  void recover();
  void count_epoch_in_force();
  bool ends_by_lost_path() const;
  bool is_hopeless() const;
  void go_on_if_all_frozen();
  std::optional<Time> keepers_until() const;
  void plan_or_suspend();
  bool take_whoever_is_there();
  void suspend();
  void suspend_over_or_try();
  void wait_suspended();

  // Steps, saves, and what waits for a saved step: reaction_saves.cpp.

  void on(const StepDecided& decided);
  void on(const StepFailed& failed);
  void on(const SavePoint& point);
  void on(const ShardsWritten& written);
  void on(const Saved& saved);
  void on(const SaveFailed& failed);
  void ask_save_point();
  void save(std::int64_t step);
  void save_failed(const std::string& why);
  void abort_save();
  void end_epoch_at_boundary();
  bool end_if_all_is_saved();
  bool wants_boundary() const;
  std::int64_t newest_saved() const { return state_.saved.empty() ? 0 : state_.saved.back(); }

  State state_;
  Time now_;
  const Limits& limits_;
  Answer answer_;
};

}  // namespace troupe::actors::reconciler
