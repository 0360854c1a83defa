#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actors/decide/records.h"
#include "core/value.h"
#include "tests/sim/cluster.h"
#include "tests/sim/reference.h"
#include "transport/wire/wire.h"

namespace troupe::simulation {

/// The meaning of a file's text. A text that was read last is not read again.
template <class Meaning>
class LastRead {
 public:
  template <class Read>
  const Meaning& of(std::string text, Read read) {
    if (!meaning_ || text != text_) meaning_ = read(text_ = std::move(text));
    return *meaning_;
  }

 private:
  std::string text_;
  std::optional<Meaning> meaning_;
};

/// Watches a run on a simulated cluster from outside: by its folder on the disk of the head, by the
/// messages of heads, and by what a head tells a person. Finds what breaks a rule.
class Monitor {
 public:
  /// `expected` has what the run comes to if nothing happens. All outlive the monitor.
  Monitor(SimulatedCluster& cluster, SimulatedMachine& head, std::string run,
          const TrainedSteps& expected);

  const std::string& run() const { return run_; }

  // Hear what happens on the cluster, to whatever run it belongs.

  void see_packet(const Wires::Party& from, const Wires::Party& to, const Parts& parts);
  void see_call(const SimulatedDisk::Call& call);

  /// Looks at the folder of the run.
  void look();
  /// Adds a new life of a head that is ready.
  void head_began(const HeadLife& head);
  /// The head has ended. Another one comes.
  void head_ended() { has_head_ = false; }
  /// The machine of the head has crashed and lost unsynced data.
  void head_crashed();
  /// A fault has damaged a checkpoint.
  void is_damaged() { is_damaged_ = true; }
  /// From now on a head may fail to read a good checkpoint.
  void reads_may_fail() { reads_may_fail_ = true; }
  /// From now on a head may tell of a step once it has planned another attempt.
  void steps_may_be_late() { steps_may_be_late_ = true; }
  /// A machine with a node has had no power for longer than a head needs to notice, and this is
  /// what the head tells of nodes.
  void is_without_power(const std::string& node, const Value& nodes);
  /// Returns whether a fault has damaged all checkpoints. Then no head resumes the run.
  bool lacks_good_checkpoint() const;
  /// A run has ended as its head tells.
  void ended(const Value& standing, std::int64_t steps);

  /// Adds the violation of a rule.
  void violate(int rule, const std::string& what);
  const std::vector<std::string>& violations() const { return violations_; }
  std::int64_t last_step() const { return last_step_; }
  std::int64_t recoveries() const { return recoveries_; }
  /// Returns the last state of the run according to its events.
  const std::string& state() const { return state_; }

 private:
  void learn(const Value& event);
  void check_step(std::int64_t step, double loss);
  void check_evaluation(std::int64_t step, double loss);
  void check_patience(const std::string& warning);
  void look_at_decisions();
  void check_decisions(const std::vector<actors::decide::Record>& records);
  const actors::decide::Journal& read_decisions(std::string text);
  std::int64_t steps_in(std::string ledger);
  std::string root() const { return "runs/" + run_ + "/checkpoints"; }
  std::string ledger_path() const { return "runs/" + run_ + "/ledger"; }
  void check_save(std::int64_t step, const std::string& weights);
  void check_saves(const std::string& when);
  /// An attempt, as far as messages told of it.
  struct Attempt {
    int optimizers = 0;
    std::map<std::int64_t, std::set<int>> kept;  // The states in the memory of its nodes, by step.
    bool has_begun = false;
  };

  void check_prepare(const Wires::Party& from, const Wires::Party& to,
                     const transport::Message& message);
  void check_start(const transport::Message& message);
  void check_keep_step(const transport::Message& message);
  SimulatedCluster& cluster_;
  SimulatedMachine& head_;
  const std::string run_;
  const TrainedSteps& expected_;
  std::vector<std::string> violations_;
  std::size_t read_ = 0;  // Bytes of the event file.
  LastRead<actors::decide::Journal> last_decisions_;
  LastRead<std::int64_t> last_ledger_;
  std::int64_t last_step_ = 0, recoveries_ = 0;
  std::int64_t told_saved_ = 0;  // The newest step that was told as saved.
  bool has_head_ = false;
  bool is_damaged_ = false;
  bool reads_may_fail_ = false;
  bool steps_may_be_late_ = false;
  std::map<std::uint64_t, Attempt> attempts_;  // Keyed by number.

  // The decisions of heads.
  std::uint64_t bytes_of_decisions_ = 0;
  std::size_t decisions_seen_ = 0;
  std::optional<Scheduler::Time> must_give_up_since_;  // The newest attempt has lost a node.
  std::int64_t planned_ = 0, planned_before_ = 0;      // Attempts, now and when it looked before.
  std::int64_t planned_by_newest_step_ = 0;            // At least so many before the furthest step.
  std::int64_t furthest_ = 0;
  std::string state_;
  std::uint64_t term_ = 0;
  /// The newest attempt that a head told a node to prepare.
  struct Told {
    std::uint64_t seq = 0, attempt = 0;
    ProcessId head;
  };
  std::map<ProcessId, Told> told_;  // Keyed by node.
};

}  // namespace troupe::simulation
