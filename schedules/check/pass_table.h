#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "schedules/schedule.h"

namespace troupe::schedules {

/// An index from passes to action numbers. Actions are numbered lane after lane. The schedule's
/// numbers must be in range, with at least one action for each stage and micro-batch, because the
/// table allocates a cell for each.
class PassTable {
 public:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  explicit PassTable(const Schedule& schedule);

  std::uint32_t size() const { return begin_.back(); }
  std::uint32_t number(int device, std::size_t position) const {
    return begin_[device] + static_cast<std::uint32_t>(position);
  }
  int device(std::uint32_t number) const;
  int position(std::uint32_t number) const {
    return static_cast<int>(number - begin_[device(number)]);
  }
  Action action(std::uint32_t number) const {
    const int on = device(number);
    return schedule_.lanes[on][number - begin_[on]];
  }
  /// Describes an action: "2F0 on device 1".
  std::string describe(std::uint32_t number) const;

  /// The number of a pass, or `none` if the schedule lacks it. A B counts as both the input half
  /// and the weight half.
  std::uint32_t forward(int stage, std::uint32_t m) const { return cells_[cell(stage, m)].forward; }
  std::uint32_t input(int stage, std::uint32_t m) const { return cells_[cell(stage, m)].input; }
  std::uint32_t weight(int stage, std::uint32_t m) const { return cells_[cell(stage, m)].weight; }
  std::uint32_t recompute(int stage, std::uint32_t m) const {
    return cells_[cell(stage, m)].recompute;
  }

 private:
  struct Cell {
    std::uint32_t forward = none;
    std::uint32_t input = none;
    std::uint32_t weight = none;
    std::uint32_t recompute = none;
  };
  std::size_t cell(int stage, std::uint32_t m) const {
    return std::size_t(stage) * schedule_.micro_batches + m;
  }

  const Schedule& schedule_;
  std::vector<std::uint32_t> begin_;  // The first number of each lane, then the total.
  std::vector<Cell> cells_;
};

}  // namespace troupe::schedules
