#include <algorithm>
#include <deque>

#include "schedules/partition/partition_methods.h"

namespace troupe::schedules {

namespace {

/// Returns the last j in [first, last] with `fits(j)`, or first - 1 if there is none. `fits` must
/// be true up to some point and false after it. Fast if the answer is close to `first`.
template <class Fits>
int furthest(int first, int last, Fits fits) {
  int good = first - 1;
  int step = 1;
  while (good + step <= last && fits(good + step)) {
    good += step;
    step *= 2;
  }
  for (int bad = std::min(good + step, last + 1); bad - good > 1;) {
    const int middle = good + (bad - good) / 2;
    (fits(middle) ? good : bad) = middle;
  }
  return good;
}

}  // namespace

bool StraightCutter::may_cross(int place, const Seat& seat, double t) const {
  return problem_.hops == Hops::exposed || occupied(seat.next, sums_.boundary(place)).count() <= t;
}

double StraightCutter::exposed_hop(int place, int seat_before) const {
  if (problem_.hops == Hops::hidden || seat_before < 0 || seat_before + 1 >= seats()) return 0;
  return hop(problem_.seats[seat_before].next, sums_.boundary(place)).count();
}

double StraightCutter::time(int i, int j, int seat) const {
  // Must equal busy_times() bit for bit, because the search compares both with one limit.
  return sums_.work(i, j) / problem_.devices[problem_.seats[seat].device].speed +
         (exposed_hop(i, seat - 1) + exposed_hop(j, seat));
}

bool StraightCutter::fits(int i, int j, int seat) const {
  const Seat& where = problem_.seats[seat];
  return sums_.memory(i, j, where) <= problem_.devices[where.device].memory;
}

std::optional<std::vector<int>> StraightCutter::cut(double t) const {
  if (problem_.hops == Hops::hidden) {
    std::vector<int> cuts;
    const Answer answer = walk(t, cuts);
    if (answer == Answer::yes) return cuts;
    if (answer == Answer::no) return std::nullopt;
  }
  return search(t);
}

/// Walks greedily: each device takes all that it can and leaves one piece for each later device. A
/// device that cannot take a piece is passed over. By induction the walk gets at least as far as
/// any valid cuts. So if it does not reach the end, no cuts do. If no device was passed over, its
/// cuts are valid; otherwise the answer is unsure.
StraightCutter::Answer StraightCutter::walk(double t, std::vector<int>& cuts) const {
  cuts = {0};
  bool passed_over = false;
  for (int seat = 0; seat < seats(); ++seat) {
    const int begin = cuts.back();
    const int left = seats() - 1 - seat;
    const int last = std::min(sums_.next_required(begin), sums_.size() - left);
    int end = furthest(begin + 1, last,
                       [&](int j) { return time(begin, j, seat) <= t && fits(begin, j, seat); });
    if (left > 0)
      while (end > begin && !may_cross(end, problem_.seats[seat], t)) --end;
    passed_over = passed_over || end <= begin;
    cuts.push_back(std::max(begin, end));
  }
  if (cuts.back() < sums_.size()) return Answer::no;
  return passed_over ? Answer::unsure : Answer::yes;
}

/// Finds the reachable end places, seat by seat. The best start for an end j is the reachable start
/// that memory allows and that has the most work before it, minus its hop. It is the front of a
/// queue that loses elements only at its ends.
std::optional<std::vector<int>> StraightCutter::search(double t) const {
  const int size = sums_.size();
  if (!searchable(seats(), size)) return std::nullopt;
  std::vector<std::vector<bool>> reached(seats() + 1, std::vector<bool>(size + 1));
  reached[0][0] = true;
  for (int seat = 0; seat < seats(); ++seat) {
    const int left = seats() - 1 - seat;
    const double speed = problem_.devices[problem_.seats[seat].device].speed;
    const auto merit = [&](int i) { return sums_.work(0, i) - exposed_hop(i, seat - 1) * speed; };
    std::deque<int> starts;
    int least = 0;
    for (int j = 1; j <= size - left; ++j) {
      if (reached[seat][j - 1]) {
        while (!starts.empty() && merit(starts.back()) <= merit(j - 1)) starts.pop_back();
        starts.push_back(j - 1);
      }
      least = std::max(least, sums_.previous_required(j));
      while (least < j && !fits(least, j, seat)) ++least;
      while (!starts.empty() && starts.front() < least) starts.pop_front();
      reached[seat + 1][j] = !starts.empty() && time(starts.front(), j, seat) <= t &&
                             (left == 0 || may_cross(j, problem_.seats[seat], t));
    }
  }
  if (!reached[seats()][size]) return std::nullopt;

  std::vector<int> cuts(seats() + 1, size);
  for (int seat = seats() - 1; seat >= 0; --seat) {
    const int end = cuts[seat + 1];
    int begin = end - 1;
    while (!reached[seat][begin] || time(begin, end, seat) > t) --begin;
    cuts[seat] = begin;
  }
  return cuts;
}

}  // namespace troupe::schedules
