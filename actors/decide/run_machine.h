#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/decide/crashes.h"
#include "actors/decide/detector.h"
#include "actors/decide/events.h"
#include "actors/decide/failures.h"
#include "actors/decide/orders.h"
#include "actors/decide/records.h"
#include "actors/decide/sources.h"
#include "transport/control/strikes.h"

/// A run's machine: a pure function that decides when an attempt begins, on which nodes and from
/// which state, what a loss or a failure means, what happens at a boundary, and when and how the
/// run ends. Heads use it for their runs (actors/lead/run_driver.h), and so do runs in one process
/// (actors/lead/local_player_host.h) and `troupe sim`. The supervisor leads the steps between
/// boundaries.
///
/// The caller of react() writes the answer's records to disk. Only then does it adopt the state and
/// carry out the orders, in order. If writing fails, it discards the answer, reports JournalFailed,
/// and asks again later.
///
/// Names that also exist elsewhere (Prepare, Begin, Event) mean those of this folder.
namespace troupe::actors::decide {

struct Limits {
  int fewest = 1;  // Below this number of nodes the run waits.
  int most = 1;    // Nodes to wait for at the start, until `start_patience` is over.
  int keep = 3;    // Checkpoints to keep.
  int copies = 1;  // Nodes that keep each state in memory.
  Duration start_patience = std::chrono::seconds(30);
  Duration gather_patience = std::chrono::seconds(5);  // For nodes that an earlier head led.
  Duration prepare_patience = std::chrono::seconds(10);
  Duration load_patience = std::chrono::seconds(5);
  Duration suspend_patience = std::chrono::hours(24);
  Duration journal_patience = std::chrono::seconds(60);
  Duration back_off = std::chrono::seconds(1);  // The first delay after attempts without progress.
  int futile_attempts = 5;
  /// The run ends after this many attempts in a row that repeated most of the lost steps but did no
  /// new one. Other attempts count only if no new step was done for `futile_time`: nodes that die
  /// at random often end an attempt early.
  int most_futile = 8;
  Duration futile_time = std::chrono::minutes(1);
  FailureLimits failures = {};
  transport::StrikeRules strikes = {
      .most = 3, .within = std::chrono::minutes(10), .quarantine = std::chrono::minutes(10)};
};

enum class Phase : std::uint8_t {
  boot,
  gather,   // Waits for nodes.
  plan,     // Waits for the planner.
  prepare,  // The attempt is recorded; its nodes prepare.
  load,     // The nodes load the state.
  run,
  recover,  // Waits until nothing of the attempt is left, and then perhaps longer.
  suspend,  // There are fewer nodes than the run needs.
  ended,
};

struct Node {
  std::string name;
  bool is_passed_over = false;  // It failed, so the next plan avoids it. After too many failures
                                // plans avoid it for a while. If too few nodes are left, failed
                                // nodes are used all the same.
  bool is_heard = true;
  bool is_cordoned = false;

  /// Returns whether a plan may use it, unless it failed too often.
  bool is_usable() const { return !is_passed_over && is_heard && !is_cordoned; }
};

/// Two nodes that cannot reach each other, although both reach the head.
struct LostPair {
  int times = 0;              // Losses since the last step that both took part in.
  Time until{};               // No plan uses both before this time.
  std::uint64_t attempt = 0;  // The attempt in which the path was lost last.
  std::string why;
};

/// A silent node that keeps a state. It may come back with its memory, under the same name.
struct SilentKeeper {
  std::string name;
  Time until{};               // How long to wait for it if nobody else has that state.
  bool has_returned = false;  // With a new life.
};

/// The place at which an attempt ended.
struct Fall {
  std::vector<Life> members;
  std::optional<std::int64_t> step;  // Steps done; empty unless the next one would have been new.
};

/// A boundary at which the attempt waits for an answer.
struct Boundary {
  std::int64_t step = 0;
  bool is_last = false;
  bool is_save_due = false;
  bool is_collected = false;  // The state was put together.
  bool is_busy = false;       // Collected or ChangesMade will come.
};

/// A state that could not be saved.
struct Unsaved {
  std::int64_t step = 0;
  std::string why;
};

struct State {
  Phase phase = Phase::boot;
  std::uint64_t term = 0;
  std::uint64_t attempt = 0;  // The latest that was recorded; numbers are never reused.
  bool is_in_head = false;    // The head has something of it, such as proxies and channels.
  std::map<Life, Node> nodes;

  PlanChoice plan;                             // The plan of `attempt`.
  std::set<Life> waits_for;                    // Nodes that have not prepared yet.
  std::set<std::string> led_before;            // Nodes to wait for: an earlier head led them.
  std::int64_t line = 0;                       // The step after which the attempt starts.
  std::int64_t decided = 0;                    // The last step that is done.
  std::int64_t entered = 0;                    // The last step that is known to be in the ledger.
  std::vector<std::int64_t> saved;             // Complete checkpoints, oldest first.
  bool was_ever_saved = false;                 // The run never begins from its seed again.
  std::map<Life, std::vector<KeptStep>> kept;  // In nodes' memory, as `Prepared` told.
  std::vector<StateSource> sources;            // From where `attempt` may begin, best first.

  std::vector<std::vector<Life>> keepers;       // Indexed by optimizer; of the latest attempt.
  std::map<Life, SilentKeeper> silent_keepers;  // Silent ones of `keepers`.
  bool waits_for_keepers = false;               // In phase `recover`.
  std::map<std::pair<Life, Life>, LostPair> lost_pairs;  // The lower life comes first.
  std::optional<Time> suspended_until;                   // Cleared when a step is done.

  std::uint64_t last_timer = 0;
  std::uint64_t timer = 0;  // The phase's timer; all other timers are outdated.
  std::uint64_t plan_number = 0;
  std::vector<Life> planned_for;
  bool takes_all = false;  // No plan fits without the nodes that failed.

  std::optional<Boundary> boundary;
  std::optional<std::int64_t> saving;  // The step whose checkpoint is being written.
  std::optional<Unsaved> unsaved;      // The last failure.
  int changes = 0;                     // They wait for a boundary.
  bool is_stopping = false;
  bool is_paused = false;
  bool is_held = false;  // No rounds begin.

  // A step is new if no attempt has done it before.
  std::int64_t furthest = 0;         // The last step that any attempt has done.
  int futile = 0;                    // Attempts in a row without a new step.
  int futile_near = 0;               // Futile attempts that repeated most lost steps.
  bool did_new_step = false;         // Whether the current attempt has done a new step.
  std::optional<Time> futile_since;  // When the first of them ended.
  transport::Strikes strikes;
  std::vector<Failure> failures;     // The latest ones.
  std::uint64_t failed_attempt = 0;  // The last one of `failures`.
  Crashes crashes;
  Fall fell;
  std::optional<Time> journal_failed;
};

/// The rows of the decision table. Tests count how often each one applies.
enum class Row : std::uint8_t {
  boot_fresh,
  boot_again,
  boot_torn,
  gather_waits,
  gather_enough,
  gather_lost,
  gather_again,
  gather_over,
  plan_ready,
  plan_none,
  arrival_under_way,
  loss_under_way,
  prepared_some,
  prepared_all,
  prepare_failed,
  loaded,
  load_failed_node,
  load_failed_source,
  load_late,
  step_done,
  run_loss,
  run_arrival,
  spare_lost,
  pair_lost,
  node_unheard,
  node_heard,
  node_cordoned,
  node_uncordoned,
  player_failed,
  fails_again,
  fails_too_often,
  node_crashes,
  crashes_again,
  boundary_asked,
  boundary_passed,
  pause_begins,
  pause_over,
  save_begins,
  save_waits,
  save_collected,
  saved,
  save_failed,
  change_due,
  change_made,
  change_refused,
  spike_found,
  spike_ends,
  step_skipped,
  stop_asked,
  stop_done,
  run_done,
  run_failed,
  attempt_ended,
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
  journal_failed,
  journal_over,
  of_the_past,
};
/// Returns its name, which ends with a zero.
const char* to_string(Row row);
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

}  // namespace troupe::actors::decide
