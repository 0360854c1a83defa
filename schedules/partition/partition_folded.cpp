#include <algorithm>

#include "schedules/partition/partition_methods.h"

namespace troupe::schedules {

namespace {

/// A state of the search: the first devices hold all pieces before `begin` and from `end` on.
struct Pair {
  int begin = 0;
  int end = 0;
  double work = 0;  // Work left to the other devices; less is better.
  Bytes bytes = 0;  // Bytes left, as the current device's seats count them; less is better.
};

/// Inserts a pair into a Pareto front: no pair is worse than another in both respects.
void insert(std::vector<Pair>& front, const Pair& pair) {
  const auto no_better = [&](const Pair& other) {
    return other.work <= pair.work && other.bytes <= pair.bytes;
  };
  if (std::any_of(front.begin(), front.end(), no_better)) return;
  std::erase_if(front, [&](const Pair& other) {
    return pair.work <= other.work && pair.bytes <= other.bytes;
  });
  front.push_back(pair);
}

/// Returns the bytes that the pieces before each place hold in this seat. A tie between the ends of
/// the chain is free, because the ends share the first device. Other ties always count twice, even
/// if the two legs of a device could share, so that the bytes are a sum over pieces.
std::vector<Bytes> held_before(const ChainSums& sums, const Seat& seat, const Capacity& device) {
  std::vector<Bytes> held(sums.size() + 1, 0);
  if (device.memory == Capacity::unlimited) return held;
  for (int i = 0; i < sums.size(); ++i) held[i + 1] = held[i] + sums.untied_memory(i, i + 1, seat);
  for (const Tie& tie : sums.ties())
    if (tie.first != 0 || tie.second != sums.size() - 1)
      for (int i = tie.second; i < sums.size(); ++i) held[i + 1] += tie.bytes;
  return held;
}

/// The two seats of one device.
struct Legs {
  const ChainSums& sums;
  const Capacity& device;
  std::vector<Bytes> down;
  std::vector<Bytes> up;

  Pair pair(int begin, int end) const {
    return {begin, end, sums.work(begin, end), up[end] - down[begin]};
  }
  /// Returns whether the device can hold the pieces between the two pairs.
  bool fits(const Pair& from, int begin, int end, double t) const {
    const double work = sums.work(from.begin, begin) + sums.work(end, from.end);
    if (work / device.speed > t) return false;
    const Bytes passing = std::max(sums.passing(from.begin, begin), sums.passing(end, from.end));
    return from.bytes - (up[end] - down[begin]) <= device.memory - passing;
  }
};

/// Finds, device by device, the pairs that are reachable in time t. A device goes from an outer
/// pair to the inner pair (begin, end).
class Fold {
 public:
  Fold(const PartitionProblem& problem, const ChainSums& sums, double t)
      : problem_(problem),
        sums_(sums),
        t_(t),
        devices_(static_cast<int>(problem.seats.size()) / 2),
        size_(sums.size()),
        reached_from_(devices_ + 1, std::vector<int>((size_ + 1) * (size_ + 1), never)) {
    from(0, 0, size_) = size_;
  }

  std::optional<std::vector<int>> run() {
    for (int k = 0; k < devices_; ++k) reach_with(k);
    int turn = 1;
    while (turn < size_ && from(devices_, turn, turn) == never) ++turn;
    if (turn >= size_) return std::nullopt;

    std::vector<int> cuts(2 * devices_ + 1);
    for (int k = devices_, begin = turn, end = turn; k >= 0; --k) {
      cuts[k] = begin;
      cuts[2 * devices_ - k] = end;
      const int outer = from(k, begin, end);
      begin = outer / (size_ + 1);
      end = outer % (size_ + 1);
    }
    return cuts;
  }

 private:
  static constexpr int never = -1;

  const Capacity& device(int k) const { return problem_.devices[problem_.seats[k].device]; }
  const Seat& seat_up(int k) const { return problem_.seats[2 * devices_ - 1 - k]; }

  /// The pair from which the first k devices reached this one, as begin * (size + 1) + end.
  int& from(int k, int begin, int end) { return reached_from_[k][begin * (size_ + 1) + end]; }

  /// Adds device k. The outer pairs from which the device can reach (begin, end) come from (begin -
  /// 1, end) and (begin, end + 1); only the Pareto front of them matters.
  void reach_with(int k) {
    const Legs legs{sums_, device(k), held_before(sums_, problem_.seats[k], device(k)),
                    held_before(sums_, seat_up(k), device(k))};
    // No device does more in time t than its speed allows; that bounds the work left before and
    // after this device.
    const double rounding = 1e-9 * sums_.work(0, size_);
    const double most_before = t_ * speed_of(k, devices_) + rounding;
    const double most_after = k + 1 == devices_ ? 0 : t_ * speed_of(k + 1, devices_) + rounding;
    const double least_after = sums_.work(0, size_) - t_ * speed_of(0, k + 1) - rounding;

    std::vector<std::vector<Pair>> fronts(size_ + 2);
    int last = 0;
    for (int begin = 1; begin < size_; ++begin) {
      while (last < size_ - 1 && sums_.work(begin, last + 1) <= most_before) ++last;
      for (int end = last; end >= begin && sums_.work(begin, end) >= least_after; --end) {
        auto& front = fronts[end];
        const auto too_far = [&](const Pair& pair) { return !legs.fits(pair, begin, end, t_); };
        if (sums_.previous_required(begin) == begin - 1) front.clear();
        std::erase_if(front, too_far);
        if (sums_.next_required(end) != end + 1)
          for (const Pair& pair : fronts[end + 1])
            if (!too_far(pair)) insert(front, pair);
        if (from(k, begin - 1, end + 1) != never) {
          const Pair pair = legs.pair(begin - 1, end + 1);
          if (!too_far(pair)) insert(front, pair);
        }
        if (!front.empty() && sums_.work(begin, end) <= most_after && leaves_enough(k, begin, end))
          from(k + 1, begin, end) = front.front().begin * (size_ + 1) + front.front().end;
      }
    }
  }

  double speed_of(int first, int last) const {
    double sum = 0;
    for (int k = first; k < last; ++k) sum += device(k).speed;
    return sum;
  }

  /// Returns whether the remaining devices get at least one piece for each leg, and the links can
  /// carry the cuts here in time.
  bool leaves_enough(int k, int begin, int end) const {
    const int left = devices_ - 1 - k;
    if (left == 0) return begin == end;
    return end - begin >= 2 * left &&
           occupied(problem_.seats[k].next, sums_.boundary(begin)).count() <= t_ &&
           occupied(seat_up(k + 1).next, sums_.boundary(end)).count() <= t_;
  }

  const PartitionProblem& problem_;
  const ChainSums& sums_;
  double t_;
  int devices_;
  int size_;
  std::vector<std::vector<int>> reached_from_;
};

}  // namespace

std::optional<std::vector<int>> cut_folded(const PartitionProblem& problem, const ChainSums& sums,
                                           double t) {
  return Fold(problem, sums, t).run();
}

}  // namespace troupe::schedules
