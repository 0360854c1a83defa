#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "actors/decide/reconciler.h"
#include "simulation/clock.h"
#include "simulation/copies.h"
#include "simulation/model.h"
#include "simulation/network.h"
#include "storage/files/memory_files.h"

namespace troupe::simulation {

namespace recon = actors::reconciler;
using recon::Life;

/// The durations of actions.
struct Costs {
  using OfPlan = std::function<Duration(const recon::PlanChoice&)>;
  static OfPlan always(Duration time) {
    return [time](const recon::PlanChoice&) { return time; };
  }

  OfPlan step;                                           // On a node that is not slow.
  OfPlan load = always(std::chrono::milliseconds(30));   // A node reads its state from disk.
  OfPlan fetch = always(std::chrono::milliseconds(30));  // It gets its state from others' memory.
  OfPlan save = always(std::chrono::milliseconds(100));  // It writes its state.
  OfPlan copy = always(Duration(0));  // Time that a node spends to copy what other nodes send it.
  Duration prepare = std::chrono::milliseconds(20);
  Duration commit = std::chrono::milliseconds(20);
  Duration journal = std::chrono::milliseconds(4);  // Until a record is on disk.
  Duration plan = std::chrono::milliseconds(1);
};

/// Deliberate bugs in the code around the real parts, of kinds that people make. The invariants
/// must detect each of them.
enum class Bug : std::uint8_t {
  none,
  journal_not_synced,       // Orders go out before the records are synced to disk.
  epoch_not_recorded,       // A restarted head does not know which attempt numbers are used.
  term_not_claimed,         // Two heads may take the same term.
  old_epochs_heard,         // A node obeys orders of any attempt.
  old_contributions_heard,  // A peer's contribution from an earlier attempt is added.
  decision_applied_twice,
  decision_without_all,  // One contribution is missing.
  work_not_stopped,      // A node continues its work after an order to stop.
  ledger_without_beginnings,
  ledger_doubled,     // A step that is reported twice is entered twice.
  ledger_not_synced,  // The ledger is not synced before its checkpoint is committed.
  commit_before_all_parts,
  part_of_wrong_step,   // A part holds the state of a later step.
  newest_not_found,     // A restarted head ignores the newest checkpoint.
  position_off_by_one,  // After a recovery, nodes read the samples of the next step.
  damage_not_seen,      // A damaged checkpoint is accepted.
  deaths_not_heard,
  timers_lost,
  activated_before_loaded,
  save_skipped_in_hold,  // A save for which nodes hold is reported as complete at once.
  kept_beyond_ledger,    // The run continues from steps in memory that are not in the ledger.
};
constexpr int bugs = static_cast<int>(Bug::kept_beyond_ledger) + 1;
std::string_view to_string(Bug bug);

/// Checks invariants after every event and keeps the first violation.
class Monitor {
 public:
  explicit Monitor(const TinyModel& model) : model_(model) {}

  void violated(const std::string& what) {
    if (violation_.empty()) violation_ = what;
  }
  const std::string& violation() const { return violation_; }

  /// Checks that an attempt number always means one plan, for all heads.
  void told(std::uint64_t epoch, const std::vector<Life>& members);
  /// Checks that a node's term and attempt never decrease.
  void follows(Life life, std::uint64_t term, std::uint64_t epoch);
  /// Checks that a step has only one outcome.
  void decided(std::int64_t step, std::uint64_t value);
  /// Checks that a node's unit has the bits of a failure-free run after that step.
  void has(Life life, int unit, std::int64_t step, std::uint64_t weight);

 private:
  const TinyModel& model_;
  std::string violation_;
  std::map<std::uint64_t, std::vector<Life>> epochs_;
  std::map<Life, std::pair<std::uint64_t, std::uint64_t>> followed_;
  std::map<std::int64_t, std::uint64_t> decided_;
};

/// The state that all simulated processes share.
struct World {
  World(std::uint64_t seed, const NetworkFaults& faults, TinyModel of)
      : clock(seed), network(clock, faults), model(std::move(of)), monitor(model) {}

  Clock clock;
  Network network;
  storage::MemoryFiles files;  // Shared by all hosts.
  TinyModel model;
  Monitor monitor;
  Costs costs;
  Copies copies{clock};
  Bug bug = Bug::none;
  std::int64_t steps = 0;
  std::int64_t save_every = 0;
  Network::Address head = 0;  // The head that nodes dial; 0: none.
  bool beats = true;          // Nodes send heartbeats. If false, the cluster reports silence.
};

constexpr auto folder = "runs/simulated";
std::string checkpoint_folder(std::int64_t step);

}  // namespace troupe::simulation
