#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "actors/decide/detector.h"
#include "actors/decide/records.h"
#include "actors/kept_step.h"

/// The events of a run, as others report them to its machine.
namespace troupe::actors::decide {

/// A planner's result for a set of nodes.
struct PlanChoice {
  std::vector<Life> members;     // The nodes in use, in the order of the plan.
  std::string text;              // For users.
  std::vector<int> owners = {};  // Processes (indices of `members`), by optimizer.

  friend bool operator==(const PlanChoice&, const PlanChoice&) = default;
};

// The head.

/// The head holds its lock and has read the records of an earlier head.
struct JournalRead {
  bool is_torn = false;  // The last record was not written to its end.
  std::vector<Record> records;
  /// The last attempt of an earlier run of the same name. Its nodes may still speak of it.
  std::uint64_t earlier_attempts = 0;
};
/// The run's folder was read, which is after the run's plan was chosen and before its first
/// attempt.
struct SavesRead {
  std::vector<std::int64_t> saved;  // Steps of complete checkpoints, oldest first.
  std::int64_t committed = 0;       // Steps in the ledger.
};
/// The records of an answer could not be written, so none of it holds.
struct JournalFailed {
  std::string why;
};
/// A timer of an order has expired.
struct Timeout {
  std::uint64_t timer = 0;
};

// Nodes.

/// A node can be used. If it has the name of an earlier one, that one is gone.
struct NodeCame {
  Life life = 0;
  std::string name;
};
/// A node is lost, by its own report or by the detector's judgement.
struct NodeLost {
  Life life = 0;
  std::string why;
  bool is_silent = false;          // The process may still live, and so may be heard again.
  std::optional<int> signal = {};  // The process has ended: by this signal, or 0: it exited.
};
/// A node cannot be heard, or is heard again. It may come back with its memory.
struct NodeHeard {
  Life life = 0;
  bool is_heard = true;
};
/// A node is to get no new work, or may get work again.
struct NodeCordoned {
  Life life = 0;
  bool is_cordoned = true;
};

// The way of an attempt.

/// The answer to the plan request `number`; empty if no plan fits, with the reason.
struct PlanMade {
  std::uint64_t number = 0;
  std::optional<PlanChoice> choice;
  std::string why = {};
  std::uint64_t attempt = 0;  // The attempt's number, if it is greater than all earlier ones.
};
struct Prepared {
  Life life = 0;
  std::uint64_t attempt = 0;
  std::vector<KeptStep> kept = {};  // The states in its memory.
};
struct PrepareFailed {
  Life life = 0;
  std::uint64_t attempt = 0;
  std::string why;
};
/// All states are where they are needed, and the players have started.
struct Loaded {
  std::uint64_t attempt = 0;
  std::int64_t step = 0;
};
/// A node cannot load its state. Or the state of that step is bad, which the reader of a checkpoint
/// tells: then `life` is 0.
struct LoadFailed {
  enum class Cause : std::uint8_t { node, source };

  Life life = 0;
  std::uint64_t attempt = 0;
  std::int64_t step = 0;
  Cause cause = Cause::node;
  std::string why;
};
/// Nothing of the attempt is left in the head, so nothing that its nodes do counts.
struct AttemptEnded {
  std::uint64_t attempt = 0;
};
/// The nodes that keep states in memory in this attempt, by optimizer.
struct KeptBy {
  std::uint64_t attempt = 0;
  std::vector<std::vector<Life>> keepers;
};
/// Two nodes of an attempt cannot reach each other. If both still reach the head, then the path is
/// lost, not a node.
struct PairLost {
  Life one = 0;
  Life other = 0;
  std::uint64_t attempt = 0;
  std::string why;
};
/// A step is done, and its record is under way to the ledger.
struct StepDone {
  std::uint64_t attempt = 0;
  std::int64_t step = 0;
};
/// The ledger has all steps up to this one.
struct StepEntered {
  std::uint64_t attempt = 0;
  std::int64_t step = 0;
};
/// A player failed, and it was not for the loss of another one.
struct PlayerFailed {
  Life life = 0;  // Its node; 0: no node is to blame.
  std::uint64_t attempt = 0;
  std::string why;  // With the place: "device 1: step 4, 1F2: ..."
};

// Boundaries. An attempt is at one when nothing is in flight and its steps are evaluated as
// configured and in the ledger. It waits there for an answer: PlayOn, Collect, ApplyChanges or End.

struct AtBoundary {
  std::uint64_t attempt = 0;
  std::int64_t step = 0;     // Steps done.
  bool is_last = false;      // No step is left to do.
  bool is_save_due = false;  // As configured.
};
/// The state after `step` was put together.
struct Collected {
  std::uint64_t attempt = 0;
  std::int64_t step = 0;
  bool is_written = false;  // A checkpoint of it is being written: Saved or SaveFailed follows.
};
/// A checkpoint is complete.
struct Saved {
  std::int64_t step = 0;
};
struct SaveFailed {
  std::int64_t step = 0;
  std::string why;
};
/// Another change of the run waits for a boundary.
struct ChangeAsked {};
struct ChangesMade {
  std::uint64_t attempt = 0;
  int count = 0;             // Changes that were made or refused.
  bool begins_anew = false;  // The players end, and another attempt begins.
};
/// The loss of the next step is a spike, so the step is not done. The attempt waits for SkipStep or
/// End.
struct SpikeFound {
  std::uint64_t attempt = 0;
  std::int64_t step = 0;  // Counted from 1.
  std::string why;
  std::string ends = {};  // Why the run must end; empty: the step may be left out.
};
/// The run leaves out the samples of a step from now on, on all nodes, in all later attempts.
struct StepSkipped {
  std::uint64_t attempt = 0;
  std::int64_t step = 0;
};
/// Finish what is in flight, save, and end; or end at once.
struct StopAsked {
  bool at_once = false;
};
/// Finish what is in flight and wait, or go on.
struct PauseAsked {
  bool is_paused = true;
};
/// Something that no other attempt can mend.
struct RunFailed {
  std::string why;
};

using Event = std::variant<JournalRead, SavesRead, JournalFailed, Timeout, NodeCame, NodeLost,
                           NodeHeard, NodeCordoned, PlanMade, Prepared, PrepareFailed, Loaded,
                           LoadFailed, AttemptEnded, KeptBy, PairLost, StepDone, StepEntered,
                           PlayerFailed, AtBoundary, Collected, Saved, SaveFailed, ChangeAsked,
                           ChangesMade, SpikeFound, StepSkipped, StopAsked, PauseAsked, RunFailed>;

/// Returns whether an event is of steps, saves, changes, or what a person asks of the run. Its
/// answer has no record, so it needs no disk.
bool is_of_steps(const Event& event);

}  // namespace troupe::actors::decide
