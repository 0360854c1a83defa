#pragma once

#include <cassert>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "schedules/partition/partition.h"
#include "schedules/partition/partition_sums.h"

/// The three ways in which partition() cuts. Cuts are places of the sums, and every problem has
/// been checked.
namespace troupe::schedules {

/// Cuts for seats on different devices.
class StraightCutter {
 public:
  StraightCutter(const PartitionProblem& problem, const ChainSums& sums)
      : problem_(problem), sums_(sums) {}

  /// Cuts whose bottleneck is at most t; none if there are none.
  std::optional<std::vector<int>> cut(double t) const;

  /// Whether so large a problem may be searched. Where not, hops must be hidden, and cuts in which
  /// a device leaves room for those after it may be missed.
  static bool searchable(int seats, int pieces) {
    return std::int64_t{seats} * pieces <= std::int64_t{1} << 31;
  }

 private:
  enum class Answer { yes, no, unsure };

  Answer walk(double t, std::vector<int>& cuts) const;
  std::optional<std::vector<int>> search(double t) const;

  int seats() const { return static_cast<int>(problem_.seats.size()); }
  bool may_cross(int place, const Seat& seat, double t) const;
  double exposed_hop(int place, int seat_before) const;
  double time(int i, int j, int seat) const;
  bool fits(int i, int j, int seat) const;

  const PartitionProblem& problem_;
  const ChainSums& sums_;
};

/// Cuts for seats in a V with hidden hops, whose bottleneck is at most t; none if there are none.
std::optional<std::vector<int>> cut_folded(const PartitionProblem& problem, const ChainSums& sums,
                                           double t);

/// How good cuts are; less is better, the first difference decides.
struct CutScore {
  double excess = 0;  // Bytes beyond the memory of the devices, in all.
  double bottleneck = 0;
  double unevenness = 0;  // Sum of the squares of the stages' times.
  double fullest = 0;     // Bytes of the device that holds most.

  friend auto operator<=>(const CutScore&, const CutScore&) = default;
};

CutScore score(const PartitionProblem& problem, const ChainSums& sums,
               const std::vector<int>& places);

/// Moves borders by one piece, alone or against another border between the same two devices, as
/// long as the score gets better.
std::vector<int> improve_borders(const PartitionProblem& problem, const ChainSums& sums,
                                 std::vector<int> places);

/// Any placement: from balanced stages, improved. The score tells whether it fits.
std::vector<int> cut_anyhow(const PartitionProblem& problem, const ChainSums& sums);

std::vector<Bytes> held_memory(const PartitionProblem& problem, const ChainSums& sums,
                               const std::vector<int>& places);
std::vector<Seconds> busy_times(const PartitionProblem& problem, const ChainSums& sums,
                                const std::vector<int>& places);

/// The busiest device, or link where hops are hidden.
double bottleneck(const PartitionProblem& problem, const ChainSums& sums,
                  const std::vector<int>& places);

/// What is wrong with a problem, its counts aside.
Status check_problem(const PartitionProblem& problem);

/// The cuts with the smallest bottleneck, where `cut(t)` finds cuts whose bottleneck is at most t
/// if there are any. Below `low` there are none.
template <class Find, class Measure>
auto least_bottleneck(double low, Find cut, Measure bottleneck) {
  auto best = cut(std::numeric_limits<double>::infinity());
  if (!best) return best;
  double high = bottleneck(*best);
  // After each find, one probe right below it tells whether that was the best: few values are
  // possible where units are alike.
  bool proving = false;
  while (high > low) {
    const double middle = low + (high - low) / 2;
    proving = proving || !(middle > low && middle < high);
    const double t = proving ? std::nextafter(high, low) : middle;
    if (t <= low) break;
    if (auto better = cut(t)) {
      best = std::move(better);
      high = bottleneck(*best);
      assert(high <= t && "a probe and the measure disagree");
      proving = !proving;
    } else if (proving) {
      break;
    } else {
      low = t;
    }
  }
  return best;
}

}  // namespace troupe::schedules
