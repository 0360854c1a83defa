#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// Nodes' memory as a store of a run's state. A **recovery point** (here: line) is a step that is
/// in the ledger and of which copies of every optimizer's state exist; the run resumes from it when
/// nodes are lost. This file has the decisions about recovery points; other files carry them out.
namespace troupe::actors {

/// Chooses for each optimizer the processes that keep its state, its own first: processes on other
/// machines if possible, and otherwise the next ones. `owners`: the optimizers' processes;
/// `machines`: the machines of the processes.
std::vector<std::vector<int>> keepers_of(std::span<const int> owners,
                                         std::span<const std::string> machines, int copies);

/// The recent frequency of node losses.
class LossRate {
 public:
  using Time = std::chrono::nanoseconds;

  void lost(Time now);
  /// Returns the mean time between losses; very long if too few are known.
  Time between(Time now) const;

 private:
  std::deque<Time> last_;
};

/// Decides which step's state is kept next, and which step is the recovery point. One step at a
/// time is being copied. Times may be of any clock.
class RecoveryPoints {
 public:
  using Time = std::chrono::nanoseconds;

  /// Keeps nothing.
  RecoveryPoints() = default;
  /// For an attempt that began at a step, which is its recovery point if it was found in memory.
  /// `copies` counts the copies of all states together.
  RecoveryPoints(std::int64_t began, int copies, int nodes, Time between_losses)
      : line_(began), copies_(copies), nodes_(nodes), between_losses_(between_losses) {}

  /// Returns whether to ask for a step: none is being copied, and the last ones cost little enough.
  bool may_ask(Time now) const { return copies_ > 0 && !asked_ && now >= next_; }
  void ask(std::int64_t step, Time now);

  /// Notes a copy of the step, which took its keeper `took`.
  void kept(std::int64_t step, Time took);
  /// Notes that a copy failed, so that only a later step can become the recovery point. Returns
  /// false if that was known.
  bool missed(std::int64_t step);
  /// Notes how many steps the ledger has.
  void entered(std::int64_t steps);

  std::int64_t line() const { return line_; }

 private:
  struct Asked {
    std::int64_t step = 0;
    Time when{};
    int kept = 0;
    Time took{};
  };
  void complete();
  Time pause_after(Time cost);

  std::int64_t line_ = 0;
  int copies_ = 0;
  int nodes_ = 1;
  Time between_losses_{};
  int made_ = 0;
  std::int64_t entered_ = 0;
  std::optional<Asked> asked_;
  Time next_{};  // The earliest time of the next request.
};

}  // namespace troupe::actors
