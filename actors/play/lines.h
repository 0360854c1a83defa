#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "transport/wire/fields.h"

/// The memory of nodes as a place for a run's state. A **line** is a step of which every
/// optimizer's state is there, in copies, and that is in the ledger: where the run goes on from
/// when nodes are lost. All that is decided about lines, without those who carry it out.
namespace troupe::actors {

/// The optimizers whose states a process has, of one step.
struct KeptStep {
  std::int64_t step = 0;
  std::vector<int> optimizers;

  static constexpr auto fields() {
    return std::tuple(transport::required("step", &KeptStep::step).at_least(0),
                      transport::required("optimizers", &KeptStep::optimizers).at_least(0));
  }
  friend bool operator==(const KeptStep&, const KeptStep&) = default;
};

/// For each optimizer the processes that keep its state, its own first. Others are on other
/// machines, as far as there are such, and else those that follow. `owners` are the optimizers'
/// processes, `machines` those that the processes are on.
std::vector<std::vector<int>> keepers_of(std::span<const int> owners,
                                         std::span<const std::string> machines, int copies);

/// From where an attempt begins in memory.
struct Found {
  std::int64_t step = 0;
  std::vector<int> from;  // By optimizer: the process that has its state; its own where it can be.

  friend bool operator==(const Found&, const Found&) = default;
};
/// The newest step up to `most` of which the state of every optimizer is there. `kept` is by
/// process.
std::optional<Found> find_newest(std::span<const std::vector<KeptStep>> kept,
                                 std::span<const int> owners, std::int64_t most);

/// How often nodes have been lost of late.
class LossRate {
 public:
  using Time = std::chrono::nanoseconds;

  void lost(Time now);
  /// From one loss to the next; very long where too few are known.
  Time between(Time now) const;

 private:
  std::deque<Time> last_;
};

/// Which step's state is to be kept next, and which one is the line: one step at a time is on its
/// way. Times are of any clock.
class Lines {
 public:
  using Time = std::chrono::nanoseconds;

  /// No lines: nothing is ever asked for.
  Lines() = default;
  /// Of an attempt that began at a step, which is its line where it was found in memory; with so
  /// many copies of all states together, on so many nodes, of which one is lost every so often.
  Lines(std::int64_t began, int copies, int nodes, Time between_losses)
      : line_(began), copies_(copies), nodes_(nodes), between_losses_(between_losses) {}

  /// Whether a step may be asked for: none is on its way, and the last ones cost little enough.
  bool may_ask(Time now) const { return copies_ > 0 && !asked_ && now >= next_; }
  void ask(std::int64_t step, Time now);

  /// A copy of that step is there, and its keeper has copied for so long.
  void kept(std::int64_t step, Time took);
  /// One will not be there. The step cannot become the line; a later one can. False where that was
  /// known.
  bool missed(std::int64_t step);
  /// The ledger has so many steps.
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
  Time next_{};  // Not before.
};

}  // namespace troupe::actors
