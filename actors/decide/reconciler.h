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
#include "actors/decide/sources.h"
#include "transport/control/strikes.h"

/// The head's decisions: a pure function that moves a run toward its desired configuration, given
/// the nodes that live and the time. A head's runs (reconciling.h, remote_cast.h), `troupe sim` and
/// tests use it. In a head, the supervisor manages steps, saves and boundaries; only simulations,
/// whose nodes need no head for a step, use those parts.
///
/// The caller of react() writes the answer's records to disk. Only then does it adopt the state and
/// carry out the orders, in order. If writing fails, it discards the answer, reports JournalFailed,
/// and asks again later.
///
/// Names that also exist elsewhere (Prepare, Start, Event) mean those of this folder.
namespace troupe::actors::reconciler {

struct Limits {
  int fewest = 1;          // Below this number of nodes the run waits.
  int most = 1;            // Nodes to wait for at the start, until `start_patience` is over.
  std::int64_t steps = 0;  // The run ends after this many steps.
  int keep = 3;            // Checkpoints to keep.
  Duration start_patience = std::chrono::seconds(30);
  Duration gather_patience = std::chrono::seconds(5);  // For nodes that an earlier head led.
  Duration plan_patience = std::chrono::seconds(1);
  Duration prepare_patience = std::chrono::seconds(10);
  Duration load_patience = std::chrono::seconds(5);
  Duration inventory_patience = std::chrono::milliseconds(500);
  Duration save_patience = std::chrono::seconds(60);
  Duration suspend_patience = std::chrono::hours(24);
  Duration journal_patience = std::chrono::seconds(60);
  Duration back_off = std::chrono::seconds(1);  // The first delay after attempts without progress.
  int futile_epochs = 5;
  /// The run ends after this many attempts in a row that repeated most of the lost steps but did no
  /// new one. Other attempts count only if no new step was done for `futile_time`: nodes that die
  /// at random often end an attempt early.
  int most_futile = 8;
  Duration futile_time = std::chrono::minutes(1);
  int save_tries = 3;
  Duration hold_time = std::chrono::milliseconds(
      200);  // The estimated cost of a switch: to save, and to begin the next attempt.
  double least_gain = 0.03;        // The least gain of a switch.
  int saves_between_switches = 2;  // The least distance between switches.
  transport::StrikeRules strikes = {
      .most = 3, .within = std::chrono::minutes(10), .quarantine = std::chrono::minutes(10)};
};

enum class Phase : std::uint8_t {
  boot,
  gather,   // Waits for nodes.
  plan,     // Waits for the planner.
  prepare,  // The attempt is recorded; its nodes prepare.
  load,     // The nodes load the state.
  run,      // The plan is active. Saves, drains and switches happen in this phase.
  recover,  // After a loss: all nodes stop.
  suspend,  // There are fewer nodes than the run needs.
  halted,   // Ended with a reason that needs a person.
  done,
};

struct Node {
  std::string name;
  enum class Use : std::uint8_t { free, passed_over, leaving };
  Use use = Use::free;  // Passed over: it failed, so the next plan avoids it. After too many
                        // failures plans avoid it for a while. If too few nodes are left, failed
                        // nodes are used all the same.
};

/// Two nodes that cannot reach each other, although both reach the head.
struct LostPair {
  int times = 0;            // Losses since the last step that both took part in.
  Time until{};             // No plan uses both before this time.
  std::uint64_t epoch = 0;  // The attempt in which the path was lost last.
  std::string why;
};

/// A silent node that keeps a state. It may come back with its memory, under the same name.
struct SilentKeeper {
  std::string name;
  Time until{};               // How long to wait for it if nobody else has that state.
  bool has_returned = false;  // With a new life.
};

struct Saving {
  std::uint64_t save = 0;
  std::int64_t step = 0;
  Meanwhile meanwhile = Meanwhile::go_on;
};

/// The reconciler's state. `nodes` is what the run should use, `plan` what it uses. Events change
/// the former; work in progress is finished or given up, never stacked.
struct State {
  Phase phase = Phase::boot;
  std::uint64_t term = 0;
  std::uint64_t epoch = 0;  // The latest that was recorded; numbers are never reused.
  std::map<Life, Node> nodes;

  PlanChoice plan;                         // The plan of `epoch`.
  std::set<Life> waits_for;                // Nodes that have not answered yet.
  std::map<Life, std::string> led_before;  // Names of nodes to wait for: an earlier head led them.
  bool is_broken = false;                  // One of them returned and no longer plays.
  std::map<Life, std::string> weights;     // The digest of the state that each node loaded.
  std::int64_t line = 0;                   // The step after which the attempt starts.
  std::int64_t decided = 0;                // The last step that is known to be in the ledger.
  std::vector<std::int64_t> saved;         // Complete checkpoints, oldest first.
  bool was_ever_saved = false;             // The run never begins from its seed again.
  std::map<Life, std::vector<KeptStep>> kept;  // In nodes' memory, as `Prepared` told.
  std::vector<StateSource> sources;            // From where `epoch` may begin, best first.

  std::vector<std::vector<Life>> keepers;  // Indexed by optimizer; of the latest active attempt.
  std::map<Life, SilentKeeper> silent_keepers;           // Silent ones of `keepers`.
  bool waits_for_keepers = false;                        // In phase `recover`.
  std::map<std::pair<Life, Life>, LostPair> lost_pairs;  // The lower life comes first.
  std::optional<Time> suspended_until;                   // Cleared when a step is done.

  std::uint64_t last_timer = 0;
  std::uint64_t timer = 0;  // The phase's timer; all other timers are outdated.
  std::uint64_t plan_number = 0;
  std::vector<Life> planned_for;
  bool takes_all = false;    // No plan fits without the nodes that failed.
  bool plans_aside = false;  // The planner was asked whether a switch would pay.

  std::optional<PlanChoice> better;  // The plan to switch to at the next save point.
  std::optional<Saving> saving;
  std::uint64_t save_timer = 0;
  std::uint64_t last_save = 0;
  int failed_saves = 0;  // In a row.
  int saves_since_switch = 1 << 20;

  bool is_stopping = false;
  // A step is new if no attempt has done it before.
  std::int64_t furthest = 0;         // The last step that any attempt has done.
  int futile = 0;                    // Attempts in a row without a new step.
  int futile_near = 0;               // Futile attempts that repeated most lost steps.
  bool did_new_step = false;         // Whether the current attempt has done a new step.
  std::optional<Time> futile_since;  // When the first of them ended.
  transport::Strikes strikes;
  /// Nodes on which a step failed, by step, then reason.
  std::map<std::int64_t, std::map<std::string, std::set<std::string>>> failed_steps;
  std::optional<Time> journal_failed;
  std::vector<Time> changes;  // Times at which nodes joined or left in the last hour.
  Time begun{};
};

/// The rows of the decision table. Tests count how often each one applies.
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

/// Reacts to any event in any state.
Answer react(State state, const Event& event, Time now, const Limits& limits);

/// Returns the nodes that the next plan may use: without nodes that failed too often, if the others
/// suffice, and without pairs that have lost each other.
std::vector<Life> usable(const State& state, Time now, const Limits& limits);
/// Returns the expected time until a node joins or leaves.
Duration time_to_next_change(const State& state, Time now);
/// Returns whether a better plan is worth the cost of a switch.
bool pays(const State& state, const PlanChoice& better, Time now, const Limits& limits);

}  // namespace troupe::actors::reconciler
