#pragma once

#include <cassert>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "schedules/partition/partition.h"
#include "schedules/partition/partition_sums.h"

/// The three methods of partition(). Cuts are places in ChainSums; every problem is checked
/// already.
namespace troupe::schedules {

/// The method for seats on different devices.
class StraightCutter {
 public:
  StraightCutter(const PartitionProblem& problem, const ChainSums& sums)
      : problem_(problem), sums_(sums) {}

  /// Returns cuts whose bottleneck is at most t, or nothing if there are none.
  std::optional<std::vector<int>> cut(double t) const;

  /// Returns whether the problem is small enough to search. If not, hops must be hidden, and cut()
  /// may miss cuts in which a device leaves work to later ones.
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

/// Cuts a V with hidden hops to a bottleneck of at most t; returns nothing if that is impossible.
std::optional<std::vector<int>> cut_folded(const PartitionProblem& problem, const ChainSums& sums,
                                           double t);

/// The cost of cuts, compared lexicographically; less is better.
struct CutScore {
  double excess = 0;  // Bytes beyond the devices' memory, in total.
  double bottleneck = 0;
  double unevenness = 0;  // Sum of the squares of the stages' times.
  double fullest = 0;     // Bytes of the fullest device.

  friend auto operator<=>(const CutScore&, const CutScore&) = default;
};

CutScore score(const PartitionProblem& problem, const ChainSums& sums,
               const std::vector<int>& places);

/// Moves borders by one piece while the score improves, alone or together with another border
/// between the same two devices.
std::vector<int> improve_borders(const PartitionProblem& problem, const ChainSums& sums,
                                 std::vector<int> places);

/// Cuts any placement by improving balanced stages. The score tells whether the cuts fit.
std::vector<int> cut_anyhow(const PartitionProblem& problem, const ChainSums& sums);

std::vector<Bytes> held_memory(const PartitionProblem& problem, const ChainSums& sums,
                               const std::vector<int>& places);
std::vector<Seconds> busy_times(const PartitionProblem& problem, const ChainSums& sums,
                                const std::vector<int>& places);

/// Returns the time of the busiest device, or of the busiest link if hops are hidden.
double bottleneck(const PartitionProblem& problem, const ChainSums& sums,
                  const std::vector<int>& places);

/// Checks a problem except for its counts.
Status check_problem(const PartitionProblem& problem);

/// Returns the cuts with the smallest bottleneck. `cut(t)` must find cuts with a bottleneck of at
/// most t if there are any; no cuts are below `low`.
template <class Find, class Measure>
auto least_bottleneck(double low, Find cut, Measure bottleneck) {
  auto best = cut(std::numeric_limits<double>::infinity());
  if (!best) return best;
  double high = bottleneck(*best);
  // After each success, one probe right below it tests whether it was optimal: only few values are
  // possible if units are alike.
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
