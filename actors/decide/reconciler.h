#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/decide/detector.h"
#include "actors/decide/reconciler_events.h"
#include "actors/decide/reconciler_orders.h"
#include "actors/decide/reconciler_record.h"
#include "transport/control/strikes.h"

/// The desired configuration of a run against the nodes that live: what a head decides, as a pure
/// function with the time as an argument. A head's runs (reconciling.h, remote_cast.h), `troupe
/// sim` and the tests run on it. In a head the supervisor has the steps, the saves and the
/// boundaries to itself: what is about these is played in simulations alone, whose nodes need no
/// head for a step.
///
/// Whoever calls react() writes down the records of its answer, and only when they are on the disk
/// takes over its state and carries out its orders, in their order. Where they cannot be written
/// the answer never was: the head says JournalFailed, and asks again later.
///
/// Names that others have too (Prepare, Start, Event) are those of these pages here.
namespace troupe::actors::reconciler {

struct Limits {
  int fewest = 1;          // Nodes without which the run waits.
  int most = 1;            // That it waits for at its start, and not beyond `start_patience`.
  std::int64_t steps = 0;  // At which it is done.
  int keep = 3;            // Checkpoints.
  Duration start_patience = std::chrono::seconds(30);
  Duration gather_patience = std::chrono::seconds(5);  // For those whom an earlier head led.
  Duration plan_patience = std::chrono::seconds(1);
  Duration prepare_patience = std::chrono::seconds(10);
  Duration load_patience = std::chrono::seconds(5);
  Duration inventory_patience = std::chrono::milliseconds(500);
  Duration save_patience = std::chrono::seconds(60);
  Duration suspend_patience = std::chrono::hours(24);
  Duration journal_patience = std::chrono::seconds(60);
  Duration back_off = std::chrono::seconds(1);  // At first, after epochs that came to nothing.
  int futile_epochs = 5;
  /// The run ends at so many epochs in a row without a new step that had done again most of what
  /// was lost. Other epochs count only once no new step has come for `futile_time`: nodes that die
  /// at random often end an epoch before it can do anything.
  int most_futile = 8;
  Duration futile_time = std::chrono::minutes(1);
  int save_tries = 3;
  Duration hold_time = std::chrono::milliseconds(200);  // To save and to begin the next epoch, so
                                                        // far as is known: what a switch costs.
  double least_gain = 0.03;                             // Of a switch,
  int saves_between_switches = 2;                       // which come no closer than this.
  transport::StrikeRules strikes = {
      .most = 3, .within = std::chrono::minutes(10), .quarantine = std::chrono::minutes(10)};
};

enum class Phase : std::uint8_t {
  boot,
  gather,   // Waits for nodes.
  plan,     // Waits for the planner.
  prepare,  // The epoch is written down; its nodes make themselves ready.
  load,     // They read the state to begin with.
  run,      // The plan is in force; saves, drains and switches are beside it.
  recover,  // After a loss: all stop where they are.
  suspend,  // Fewer nodes than the run needs.
  halted,   // Ended, with a reason that needs a person.
  done,
};

struct Node {
  std::string name;
  enum class Use : std::uint8_t { free, passed_over, leaving };
  Use use = Use::free;  // Passed over: it failed, and the next plan does without it. So does each
                        // for a while after too many failures. Where the others are too few, who
                        // has failed is better than nobody.
};

/// Two nodes that have lost each other, though both reach the head.
struct LostPair {
  int times = 0;            // Without a step in between that both had a part in.
  Time until{};             // No plan has both before; then the path is tried again.
  std::uint64_t epoch = 0;  // In which it was lost last.
  std::string why;
};

/// A keeper of a state that fell silent: with its memory it may come back, by the same name.
struct SilentKeeper {
  std::string name;
  Time until{};               // So long it is waited for if nobody else keeps that state.
  bool has_returned = false;  // As another life.
};

struct Saving {
  std::uint64_t save = 0;
  std::int64_t step = 0;
  Meanwhile meanwhile = Meanwhile::go_on;
};

/// What is wanted is in `nodes`, what is in force in `plan`: new events change the first; what is
/// under way is finished or given up, never stacked.
struct State {
  Phase phase = Phase::boot;
  std::uint64_t term = 0;
  std::uint64_t epoch = 0;  // The newest that was written down: a number is never used again.
  std::map<Life, Node> nodes;

  PlanChoice plan;                         // Of `epoch`.
  std::set<Life> waits_for;                // Who has not answered yet.
  std::map<Life, std::string> led_before;  // By an earlier head, by name: who is waited for.
  bool is_broken = false;                  // One of them came, and does not play any more.
  std::map<Life, std::string> weights;     // What each of them has loaded.
  std::int64_t line = 0;                   // The step that an epoch begins after.
  std::int64_t decided = 0;                // The newest step that was heard to be done.
  std::vector<std::int64_t> saved;         // Checkpoints that are complete, oldest first.

  std::vector<std::vector<Life>> keepers;       // By optimizer, of the newest epoch in force.
  std::map<Life, SilentKeeper> silent_keepers;  // Of them.
  bool waits_for_keepers = false;               // While it recovers.
  std::map<std::pair<Life, Life>, LostPair> lost_pairs;  // The lower life first.
  std::optional<Time> suspended_until;                   // Unless a step is done before.

  std::uint64_t last_timer = 0;
  std::uint64_t timer = 0;  // Of the phase; others that come are of the past.
  std::uint64_t plan_number = 0;
  std::vector<Life> planned_for;
  bool takes_all = false;    // No plan fits without those who have failed.
  bool plans_aside = false;  // The planner is asked whether a switch would pay.

  std::optional<PlanChoice> better;  // To be switched to at the next save point.
  std::optional<Saving> saving;
  std::uint64_t save_timer = 0;
  std::uint64_t last_save = 0;
  int failed_saves = 0;  // One after the other.
  int saves_since_switch = 1 << 20;

  bool is_stopping = false;
  // A step is new if no epoch has done it before.
  std::int64_t furthest = 0;         // The newest step that any epoch has done.
  int futile = 0;                    // Epochs in a row without a new step.
  int futile_near = 0;               // Those of them that had done again most of what was lost.
  bool did_new_step = false;         // The epoch in force has.
  std::optional<Time> futile_since;  // When the first of them ended.
  transport::Strikes strikes;
  /// By step and by what went wrong: on whom.
  std::map<std::int64_t, std::map<std::string, std::set<std::string>>> failed_steps;
  std::optional<Time> journal_failed;
  std::vector<Time> changes;  // Nodes that came or went in the last hour.
  Time begun{};
};

/// The rows of the table: which one an answer is of. Tests count them.
enum class Row : std::uint8_t {
  boot_fresh,
  boot_again,
  boot_torn,
  boot_damaged,
  gather_waits,
  gather_enough,
  gather_adopt,
  gather_lost,
  gather_again,
  gather_over,
  plan_ready,
  plan_none,
  plan_late,
  loss_under_way,
  arrival_under_way,
  prepared_some,
  prepared_all,
  prepare_failed,
  line_found,
  loaded_some,
  loaded_all,
  load_failed_node,
  load_failed_checkpoint,
  load_differs,
  run_decided,
  run_loss,
  run_spare_lost,
  pair_lost,
  run_suspect,
  run_notice,
  run_notice_short,
  run_arrival,
  run_better,
  run_not_better,
  run_slow,
  step_failed,
  step_poisoned,
  save_begins,
  save_still_goes_on,
  save_written,
  save_complete,
  save_failed,
  save_given_up,
  switch_begins,
  switch_dropped,
  drain_begins,
  drain_lost,
  recover_waits,
  recover_gathers,
  recover_plans,
  recover_merges,
  recover_futile,
  recover_hopeless,
  suspend_begins,
  suspend_waits,
  suspend_tries,
  suspend_enough,
  suspend_over,
  stop_asked,
  stop_done,
  run_done,
  drain_asked,
  journal_failed,
  journal_over,
  deposed,
  of_the_past,
};
std::string_view to_string(Row row);
std::vector<Row> all_rows();

struct Answer {
  State state;
  std::vector<Record> records;
  std::vector<Order> orders;
  std::vector<Row> rows;  // In the order in which they applied.
  std::string reason;

  Row row() const { return rows.empty() ? Row::of_the_past : rows.front(); }
};

/// Total: every event has an answer in every state.
Answer react(State state, const Event& event, Time now, const Limits& limits);

/// Who may have a part in the next plan: without those who failed too often, as long as the others
/// suffice. No two of them have lost each other.
std::vector<Life> usable(const State& state, Time now, const Limits& limits);
/// How long, so far as is known, it is until the next node comes or goes.
Duration time_to_next_change(const State& state, Time now);
/// Whether a better plan is worth its switch.
bool pays(const State& state, const PlanChoice& better, Time now, const Limits& limits);

}  // namespace troupe::actors::reconciler
