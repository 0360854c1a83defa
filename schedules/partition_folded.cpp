#include <algorithm>

#include "schedules/partition_methods.h"

namespace troupe::schedules {

namespace {

/// The first devices hold all pieces before `begin` and all from `end` on.
struct Pair {
  int begin = 0;
  int end = 0;
  double work = 0;  // That is left to the other devices: less is better.
  Bytes bytes = 0;  // Likewise, as the seats of the device at hand count them.
};

/// The pairs of which none is worse than another in both respects.
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

/// What the pieces before each place hold in this seat. A tie between the ends of the chain costs
/// nothing, as they share the first device; other second copies count even where the legs of a
/// device could share, so that what is held is a sum over pieces.
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
  /// Whether the device may take what lies between the two pairs.
  bool fits(const Pair& from, int begin, int end, double t) const {
    const double work = sums.work(from.begin, begin) + sums.work(end, from.end);
    if (work / device.speed > t) return false;
    const Bytes passing = std::max(sums.passing(from.begin, begin), sums.passing(end, from.end));
    return from.bytes - (up[end] - down[begin]) <= device.memory - passing;
  }
};

}  // namespace

/// Device by device, which pairs can be reached. To reach (begin, end) a device starts from a pair
/// further out on both sides, and of these only the best matter: they are handed on from
/// (begin - 1, end) and (begin, end + 1).
std::optional<std::vector<int>> FoldedCutter::cut(double t) const {
  const int size = sums_.size();
  const int devices = static_cast<int>(problem_.seats.size()) / 2;
  const int width = size + 1;
  constexpr int never = -1;
  // For each device and pair: the pair that it was reached from.
  std::vector<std::vector<int>> from(devices + 1,
                                     std::vector<int>(std::size_t(width) * width, never));
  from[0][size] = size;  // (0, size)
  for (int k = 0; k < devices; ++k) {
    const Seat& down = problem_.seats[k];
    const Seat& up = problem_.seats[2 * devices - 1 - k];
    const Seat& below = problem_.seats[2 * devices - 2 - k];
    const Capacity& device = problem_.devices[down.device];
    const Legs legs{sums_, device, held_before(sums_, down, device),
                    held_before(sums_, up, device)};
    const int left = devices - 1 - k;
    std::vector<std::vector<Pair>> fronts(width + 1);
    for (int begin = 1; begin < size; ++begin) {
      for (int end = size - 1; end >= begin; --end) {
        auto& front = fronts[end];
        if (sums_.previous_required(begin) == begin - 1) front.clear();
        if (sums_.next_required(end) != end + 1)
          for (const Pair& pair : fronts[end + 1]) insert(front, pair);
        if (from[k][(begin - 1) * width + end + 1] != never)
          insert(front, legs.pair(begin - 1, end + 1));

        if (left == 0 ? begin != end : end - begin < 2 * left) continue;
        if (left > 0 && (occupied(down.next, sums_.boundary(begin)).count() > t ||
                         occupied(below.next, sums_.boundary(end)).count() > t))
          continue;
        const auto start = std::find_if(front.begin(), front.end(), [&](const Pair& pair) {
          return legs.fits(pair, begin, end, t);
        });
        if (start != front.end())
          from[k + 1][begin * width + end] = start->begin * width + start->end;
      }
    }
  }

  int turn = 1;
  while (turn < size && from[devices][turn * width + turn] == never) ++turn;
  if (turn >= size) return std::nullopt;
  std::vector<int> cuts(2 * devices + 1);
  int pair = turn * width + turn;
  for (int k = devices; k >= 0; --k) {
    cuts[k] = pair / width;
    cuts[2 * devices - k] = pair % width;
    pair = from[k][pair];
  }
  return cuts;
}

}  // namespace troupe::schedules
