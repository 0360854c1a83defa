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

/// How long things take.
struct Costs {
  using OfPlan = std::function<Duration(const recon::PlanChoice&)>;
  static OfPlan always(Duration time) {
    return [time](const recon::PlanChoice&) { return time; };
  }

  OfPlan step;                                           // Where nobody is slow.
  OfPlan load = always(std::chrono::milliseconds(30));   // Until a node has its part of the state
  OfPlan fetch = always(std::chrono::milliseconds(30));  // from the disk, or from others' memory,
  OfPlan save = always(std::chrono::milliseconds(100));  // or has written it.
  OfPlan copy = always(Duration(0));  // Of a node's time, to keep what others give it.
  Duration prepare = std::chrono::milliseconds(20);
  Duration commit = std::chrono::milliseconds(20);
  Duration journal = std::chrono::milliseconds(4);  // Until a record is on the disk.
  Duration plan = std::chrono::milliseconds(1);
};

/// Mistakes made on purpose in what is around the real parts, each of a kind that people make: the
/// invariants must find every one.
enum class Bug : std::uint8_t {
  none,
  journal_not_synced,       // Orders go out while the records are in the system's memory alone.
  epoch_not_recorded,       // A head that comes back does not know which numbers were given out.
  term_not_claimed,         // Nothing keeps a head from taking the term of another.
  old_epochs_heard,         // A node takes orders of any epoch for orders of its own.
  old_contributions_heard,  // What a peer of an earlier epoch made is added up.
  decision_applied_twice,
  decision_without_all,  // One contribution short.
  work_not_stopped,      // A node that was told to stop goes on with what it does.
  ledger_without_beginnings,
  ledger_doubled,     // What is told twice is entered twice.
  ledger_not_synced,  // Before the checkpoint of its steps is complete.
  commit_before_all_parts,
  part_of_wrong_step,   // A part is of the step that the node has come to meanwhile.
  newest_not_found,     // A head that comes back begins before the newest checkpoint.
  position_off_by_one,  // After a recovery the samples are those of the step after.
  damage_not_seen,      // A checkpoint is taken as it is.
  deaths_not_heard,
  timers_lost,
  activated_before_loaded,
  save_skipped_in_hold,  // A save that nodes hold for is told to be complete at once.
  kept_beyond_ledger,    // What nodes have in memory of steps that nobody entered is gone on from.
};
constexpr int bugs = static_cast<int>(Bug::kept_beyond_ledger) + 1;
std::string_view to_string(Bug bug);

/// What never may be, looked at after every event. The first violation stays.
class Monitor {
 public:
  explicit Monitor(const TinyModel& model) : model_(model) {}

  void violated(const std::string& what) {
    if (violation_.empty()) violation_ = what;
  }
  const std::string& violation() const { return violation_; }

  /// A node was told of an epoch: two heads, or two lives of one, mean the same plan by its number.
  void told(std::uint64_t epoch, const std::vector<Life>& members);
  /// A node has an epoch and a term: they only grow.
  void follows(Life life, std::uint64_t term, std::uint64_t epoch);
  /// A step has one outcome.
  void decided(std::int64_t step, std::uint64_t value);
  /// Whoever has a unit after so many steps has the bits of everybody else.
  void has(Life life, int unit, std::int64_t step, std::uint64_t weight);

 private:
  const TinyModel& model_;
  std::string violation_;
  std::map<std::uint64_t, std::vector<Life>> epochs_;
  std::map<Life, std::pair<std::uint64_t, std::uint64_t>> followed_;
  std::map<std::int64_t, std::uint64_t> decided_;
};

/// What all processes of a simulation share.
struct World {
  World(std::uint64_t seed, const NetworkFaults& faults, TinyModel of)
      : clock(seed), network(clock, faults), model(std::move(of)), monitor(model) {}

  Clock clock;
  Network network;
  storage::MemoryFiles files;  // That all hosts see.
  TinyModel model;
  Monitor monitor;
  Costs costs;
  Copies copies{clock};
  Bug bug = Bug::none;
  std::int64_t steps = 0;
  std::int64_t save_every = 0;
  Network::Address head = 0;  // Where nodes dial; 0: there is none.
  bool beats =
      true;  // Nodes send heartbeats; else the cluster tells when silence would be noticed.
};

constexpr auto folder = "runs/simulated";
std::string checkpoint_folder(std::int64_t step);

}  // namespace troupe::simulation
