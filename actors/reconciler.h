#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <variant>
#include <vector>

#include "actors/detector.h"
#include "actors/reconciler_record.h"
#include "transport/fields.h"
#include "transport/strikes.h"

/// The desired configuration of a run against the nodes that live: what a head decides, as a pure
/// function with the time as an argument. The same code runs in a head and in a simulation of one.
///
/// Whoever calls react() writes down the records of its answer, and only when they are on the disk
/// takes over its state and carries out its orders, in their order. Where they cannot be written
/// the answer never was: the head says JournalFailed, and asks again later.
///
/// What has a `type` is said by nodes, or to them, and has its fields on the wire; whom it is for
/// is no field of it. Names that others have too (Prepare, Start, Event) are those of this page
/// here.
namespace troupe::actors::reconciler {

/// What a planner made of the nodes that it was given.
struct PlanChoice {
  std::vector<Life> members;  // Who has a part, in the order of the plan's nodes.
  double rate = 0;            // Steps per second.
  std::string text;           // For a person.

  static constexpr auto fields() {
    return std::tuple(transport::required("members", &PlanChoice::members),
                      transport::required("rate", &PlanChoice::rate),
                      transport::required("text", &PlanChoice::text));
  }
  friend bool operator==(const PlanChoice&, const PlanChoice&) = default;
};

struct Limits {
  int fewest = 1;          // Nodes without which the run waits.
  int most = 1;            // That it waits for at its start, and not beyond `start_patience`.
  std::int64_t steps = 0;  // At which it is done.
  int keep = 3;            // Checkpoints.
  Duration start_patience = std::chrono::seconds(30);
  Duration gather_patience = std::chrono::seconds(5);  // For those whom a head knew before its end.
  Duration plan_patience = std::chrono::seconds(1);
  Duration prepare_patience = std::chrono::seconds(10);
  Duration load_patience = std::chrono::seconds(5);
  Duration inventory_patience = std::chrono::milliseconds(500);
  Duration save_patience = std::chrono::seconds(60);
  Duration suspend_patience = std::chrono::hours(24);
  Duration journal_patience = std::chrono::seconds(60);
  Duration back_off = std::chrono::seconds(1);  // At first, after epochs that came to nothing.
  int futile_epochs = 5;
  int save_tries = 3;
  Duration hold_time = std::chrono::milliseconds(200);  // To save and to begin the next epoch, so
                                                        // far as is known: what a switch costs.
  double least_gain = 0.03;                             // Of a switch,
  int saves_between_switches = 2;                       // which come no closer than this.
  transport::StrikeRules strikes = {
      .most = 3, .within = std::chrono::minutes(10), .quarantine = std::chrono::minutes(10)};
};

// Events.

/// The head has its lock, and has read what an earlier one left.
struct JournalRead {
  enum class Health : std::uint8_t { whole, torn, damaged };

  Health health = Health::whole;
  std::vector<Record> records;
  std::vector<std::int64_t> saved;  // Steps of the checkpoints that are there and complete.
};
/// A node is there, for the first time in its life or again.
struct Attached {
  static constexpr std::string_view type = "member.attached";

  Life life = 0;
  std::string name;
  std::uint64_t term = 0;   // The highest that it knows,
  std::uint64_t epoch = 0;  // and what it plays; 0: nothing.

  static constexpr auto fields() {
    return std::tuple(transport::required("life", &Attached::life),
                      transport::required("name", &Attached::name),
                      transport::required("term", &Attached::term),
                      transport::required("epoch", &Attached::epoch));
  }
};
/// A node is gone: it said so, or the detector did.
struct Lost {
  Life life = 0;
  std::string why;
};
struct Suspected {
  Life life = 0;
  std::string why;
};
/// A node will go in so much time.
struct Notice {
  static constexpr std::string_view type = "member.notice";

  Life life = 0;
  Duration left{};

  static constexpr auto fields() {
    return std::tuple(transport::required("life", &Notice::life),
                      transport::required("left", &Notice::left));
  }
};
/// Of the request with this number; nothing: no plan fits, and why.
struct PlanMade {
  std::uint64_t number = 0;
  std::optional<PlanChoice> choice;
  std::string why;
  std::int64_t kept = 0;  // The newest step whose state these nodes have in memory; 0: none.
};
struct Prepared {
  static constexpr std::string_view type = "member.prepared";

  Life life = 0;
  std::uint64_t epoch = 0;

  static constexpr auto fields() {
    return std::tuple(transport::required("life", &Prepared::life),
                      transport::required("epoch", &Prepared::epoch));
  }
};
struct PrepareFailed {
  static constexpr std::string_view type = "member.prepare_failed";

  Life life = 0;
  std::uint64_t epoch = 0;
  std::string why;

  static constexpr auto fields() {
    return std::tuple(transport::required("life", &PrepareFailed::life),
                      transport::required("epoch", &PrepareFailed::epoch),
                      transport::required("why", &PrepareFailed::why));
  }
};
struct Loaded {
  static constexpr std::string_view type = "member.loaded";

  Life life = 0;
  std::uint64_t epoch = 0;
  std::int64_t step = 0;
  std::string weights;  // The digest of all that it read.

  static constexpr auto fields() {
    return std::tuple(transport::required("life", &Loaded::life),
                      transport::required("epoch", &Loaded::epoch),
                      transport::required("step", &Loaded::step),
                      transport::required("weights", &Loaded::weights));
  }
};
struct LoadFailed {
  static constexpr std::string_view type = "member.load_failed";

  enum class Cause : std::uint8_t { node, checkpoint };

  Life life = 0;
  std::uint64_t epoch = 0;
  std::int64_t step = 0;
  Cause cause = Cause::node;
  std::string why;

  static constexpr auto fields() {
    return std::tuple(transport::required("life", &LoadFailed::life),
                      transport::required("epoch", &LoadFailed::epoch),
                      transport::required("step", &LoadFailed::step),
                      transport::required("cause", &LoadFailed::cause),
                      transport::required("why", &LoadFailed::why));
  }
};
constexpr std::array<std::string_view, 2> enum_names(LoadFailed::Cause) {
  return {"node", "checkpoint"};
}
/// A node has stopped where it was.
struct Frozen {
  static constexpr std::string_view type = "member.frozen";

  Life life = 0;
  std::uint64_t epoch = 0;  // That it was told to freeze.
  std::int64_t step = 0;    // Steps that it knows to be decided.

  static constexpr auto fields() {
    return std::tuple(transport::required("life", &Frozen::life),
                      transport::required("epoch", &Frozen::epoch),
                      transport::required("step", &Frozen::step));
  }
};
struct StepDecided {
  static constexpr std::string_view type = "member.step_decided";

  std::uint64_t epoch = 0;
  std::int64_t step = 0;  // Steps done.

  static constexpr auto fields() {
    return std::tuple(transport::required("epoch", &StepDecided::epoch),
                      transport::required("step", &StepDecided::step));
  }
};
struct StepFailed {
  static constexpr std::string_view type = "member.step_failed";

  Life life = 0;
  std::uint64_t epoch = 0;
  std::int64_t step = 0;
  std::string why;

  static constexpr auto fields() {
    return std::tuple(transport::required("life", &StepFailed::life),
                      transport::required("epoch", &StepFailed::epoch),
                      transport::required("step", &StepFailed::step),
                      transport::required("why", &StepFailed::why));
  }
};
/// Nothing is in flight, and a checkpoint is due, was asked for, or the run is at its end.
struct SavePoint {
  static constexpr std::string_view type = "member.save_point";

  std::uint64_t epoch = 0;
  std::int64_t step = 0;

  static constexpr auto fields() {
    return std::tuple(transport::required("epoch", &SavePoint::epoch),
                      transport::required("step", &SavePoint::step));
  }
};
/// All parts of a save are on the disk, with the sizes and checksums that were told.
struct ShardsWritten {
  std::uint64_t save = 0;
};
/// The checkpoint is complete, even if it was given up meanwhile: older ones may have gone for it.
struct Saved {
  std::uint64_t save = 0;
  std::int64_t step = 0;
};
struct SaveFailed {
  std::uint64_t save = 0;
  std::string why;
};
struct Slow {
  Life life = 0;
  std::string why;
};
struct JournalFailed {
  std::string why;
};
/// Another head came later.
struct Deposed {
  std::uint64_t term = 0;
};
struct StopAsked {};
struct DrainAsked {
  std::string name;
};
/// A timer that an order has set.
struct Timeout {
  std::uint64_t timer = 0;
};

using Event =
    std::variant<JournalRead, Attached, Lost, Suspected, Notice, PlanMade, Prepared, PrepareFailed,
                 Loaded, LoadFailed, Frozen, StepDecided, StepFailed, SavePoint, ShardsWritten,
                 Saved, SaveFailed, Slow, JournalFailed, Deposed, StopAsked, DrainAsked, Timeout>;

// Orders.

struct SetTimer {
  std::uint64_t timer = 0;
  Duration after{};
};
/// Plan for these nodes; the answer has the number.
struct MakePlan {
  std::uint64_t number = 0;
  std::vector<Life> nodes;
};
/// Have the plan without this node at hand.
struct Foresee {
  Life without = 0;
};
/// To nodes, from here on.
struct Prepare {
  static constexpr std::string_view type = "epoch.prepare";

  std::uint64_t epoch = 0;
  PlanChoice plan;

  static constexpr auto fields() {
    return std::tuple(transport::required("epoch", &Prepare::epoch),
                      transport::required("plan", &Prepare::plan));
  }
};
struct Load {
  static constexpr std::string_view type = "epoch.load";

  std::uint64_t epoch = 0;
  std::vector<Life> nodes;
  std::int64_t step = 0;  // The checkpoint; 0: what the seed or the configuration says.

  static constexpr auto fields() {
    return std::tuple(transport::required("epoch", &Load::epoch),
                      transport::required("step", &Load::step));
  }
};
struct Activate {
  static constexpr std::string_view type = "epoch.activate";

  std::uint64_t epoch = 0;
  std::vector<Life> nodes;
  std::int64_t step = 0;

  static constexpr auto fields() {
    return std::tuple(transport::required("epoch", &Activate::epoch),
                      transport::required("step", &Activate::step));
  }
};
/// The head is another one, and all goes on.
struct Adopt {
  static constexpr std::string_view type = "epoch.adopt";

  std::uint64_t term = 0;
  std::uint64_t epoch = 0;
  std::vector<Life> nodes;

  static constexpr auto fields() {
    return std::tuple(transport::required("term", &Adopt::term),
                      transport::required("epoch", &Adopt::epoch));
  }
};
struct Freeze {
  static constexpr std::string_view type = "epoch.freeze";

  std::uint64_t epoch = 0;
  std::vector<Life> nodes;

  static constexpr auto fields() {
    return std::tuple(transport::required("epoch", &Freeze::epoch));
  }
};
struct Abort {
  static constexpr std::string_view type = "epoch.abort";

  std::uint64_t epoch = 0;
  std::vector<Life> nodes;

  static constexpr auto fields() { return std::tuple(transport::required("epoch", &Abort::epoch)); }
};
/// At the next boundary, as soon as it is reached: SavePoint comes.
struct AskSavePoint {
  static constexpr std::string_view type = "epoch.ask_save_point";

  std::uint64_t epoch = 0;

  static constexpr auto fields() {
    return std::tuple(transport::required("epoch", &AskSavePoint::epoch));
  }
};
/// What nodes do while a save is written.
enum class Meanwhile : std::uint8_t { go_on, hold };
constexpr std::array<std::string_view, 2> enum_names(Meanwhile) { return {"go_on", "hold"}; }
struct Save {
  static constexpr std::string_view type = "epoch.save";

  std::uint64_t save = 0;
  std::uint64_t epoch = 0;
  std::int64_t step = 0;
  Meanwhile meanwhile = Meanwhile::go_on;

  static constexpr auto fields() {
    return std::tuple(transport::required("save", &Save::save),
                      transport::required("epoch", &Save::epoch),
                      transport::required("step", &Save::step),
                      transport::required("meanwhile", &Save::meanwhile));
  }
};
struct CommitSave {
  std::uint64_t save = 0;
  std::int64_t step = 0;
};
struct AbortSave {
  static constexpr std::string_view type = "epoch.abort_save";

  std::uint64_t save = 0;

  static constexpr auto fields() {
    return std::tuple(transport::required("save", &AbortSave::save));
  }
};
/// Nodes that hold after this step need not any more; one that has not reached it need not hold.
struct GoOn {
  static constexpr std::string_view type = "epoch.go_on";

  std::uint64_t epoch = 0;
  std::int64_t step = 0;

  static constexpr auto fields() {
    return std::tuple(transport::required("epoch", &GoOn::epoch),
                      transport::required("step", &GoOn::step));
  }
};
/// A node has no part in the run any more, and may go.
struct Retire {
  static constexpr std::string_view type = "epoch.retire";

  Life life = 0;
  std::string why;

  static constexpr auto fields() {
    return std::tuple(transport::required("life", &Retire::life),
                      transport::required("why", &Retire::why));
  }
};
struct Reject {
  static constexpr std::string_view type = "epoch.reject";

  Life life = 0;
  std::string why;

  static constexpr auto fields() {
    return std::tuple(transport::required("life", &Reject::life),
                      transport::required("why", &Reject::why));
  }
};
struct Warn {
  std::string text;
};
struct End {
  int code = 0;  // What the program tells the shell.
  std::string why;
};

using Order =
    std::variant<SetTimer, MakePlan, Foresee, Prepare, Load, Activate, Adopt, Freeze, Abort,
                 AskSavePoint, Save, CommitSave, AbortSave, GoOn, Retire, Reject, Warn, End>;

// State.

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
  Use use = Use::free;  // Passed over: it failed, and the next plan does without it.
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

  PlanChoice plan;                      // Of `epoch`.
  std::set<Life> waits_for;             // Who has not answered yet.
  std::map<Life, std::string> weights;  // What each of them has loaded.
  std::int64_t line = 0;                // The step that an epoch begins after.
  std::int64_t decided = 0;             // The newest step that was heard to be done.
  std::vector<std::int64_t> saved;      // Checkpoints that are complete, oldest first.

  std::uint64_t last_timer = 0;
  std::uint64_t timer = 0;  // Of the phase; others that come are of the past.
  std::uint64_t plan_number = 0;
  std::vector<Life> planned_for;
  bool plans_aside = false;  // The planner is asked whether a switch would pay.

  std::optional<PlanChoice> better;  // To be switched to at the next save point.
  std::optional<Saving> saving;
  std::uint64_t save_timer = 0;
  std::uint64_t last_save = 0;
  int failed_saves = 0;  // One after the other.
  int saves_since_switch = 1 << 20;

  bool is_stopping = false;
  int futile = 0;  // Epochs without a step.
  transport::Strikes strikes;
  std::map<std::int64_t, std::set<std::string>> failed_steps;  // By step, on whom.
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
  recover_plans,
  recover_merges,
  recover_futile,
  suspend_begins,
  suspend_waits,
  suspend_enough,
  suspend_over,
  stop_asked,
  stop_done,
  run_done,
  drain_asked,
  journal_failed,
  journal_over,
  deposed,
  rejected,
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

/// Total: every event in every state has an answer.
Answer react(State state, const Event& event, Time now, const Limits& limits);

/// How long, so far as is known, it is until the next node comes or goes.
Duration time_to_next_change(const State& state, Time now);
/// Whether a better plan is worth its switch.
bool pays(const State& state, const PlanChoice& better, Time now, const Limits& limits);

}  // namespace troupe::actors::reconciler
