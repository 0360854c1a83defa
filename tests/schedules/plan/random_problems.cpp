#include "random_problems.h"

#include <algorithm>
#include <functional>

namespace troupe::schedules::testing {

Chain random_chain(Dice& dice, int most) {
  Chain chain;
  const int count = dice.roll(1, most);
  const bool heavy = dice.one_in(3);
  const bool special_cuts = dice.one_in(4);
  for (int i = 0; i < count; ++i) {
    Piece piece;
    piece.work = Seconds(heavy && dice.one_in(4) ? dice.roll(10, 30) : dice.roll(0, 9));
    piece.weights = dice.roll(0, 8);
    piece.fixed = dice.roll(0, 8);
    piece.stash = dice.roll(0, 8);
    piece.boundary = dice.roll(1, 16);
    if (special_cuts && dice.one_in(4)) piece.cut = Cut::forbidden;
    if (special_cuts && dice.one_in(8)) piece.cut = Cut::required;
    chain.pieces.push_back(piece);
  }
  if (count > 1 && dice.one_in(4)) chain.ties.push_back({0, count - 1, dice.roll(1, 10)});
  return chain;
}

namespace {

Capacity random_device(Dice& dice, bool limited, bool unequal) {
  Capacity device;
  if (unequal) device.speed = dice.one_in(2) ? dice.roll(1, 4) : 1.0 / dice.roll(1, 4);
  if (limited) device.memory = dice.roll(20, 140);
  return device;
}

Link random_link(Dice& dice) {
  return {.latency = static_cast<double>(dice.roll(0, 2)),
          .bandwidth = static_cast<double>(1 << dice.roll(0, 3))};
}

}  // namespace

PartitionProblem random_straight(Dice& dice, int most_units, int most_devices) {
  PartitionProblem problem;
  problem.chain = random_chain(dice, most_units);
  const int units = static_cast<int>(problem.chain.pieces.size());
  if (units > 2 && dice.one_in(4)) {
    const int second = dice.roll(1, units - 1);
    problem.chain.ties.push_back({dice.roll(0, second - 1), second, dice.roll(1, 10)});
  }
  if (dice.one_in(4))
    for (Piece& piece : problem.chain.pieces) piece.passing = dice.roll(0, 20);
  problem.hops = dice.one_in(3) ? Hops::exposed : Hops::hidden;
  const int devices = dice.roll(1, most_devices);
  const bool limited = dice.one_in(2);
  const bool unequal = dice.one_in(2);
  const bool linked = dice.one_in(2);
  for (int d = 0; d < devices; ++d) {
    problem.devices.push_back(random_device(dice, limited, unequal));
    Seat seat{.device = d, .in_flight = devices - d, .copies = dice.roll(1, 2), .next = {}};
    if (linked) seat.next = random_link(dice);
    problem.seats.push_back(seat);
  }
  return problem;
}

PartitionProblem random_folded(Dice& dice, int most_units, int most_devices) {
  PartitionProblem problem;
  problem.chain = random_chain(dice, most_units);
  const int devices = dice.roll(1, most_devices);
  const bool limited = dice.one_in(2);
  const bool unequal = dice.one_in(2);
  const bool linked = dice.one_in(2);
  for (int d = 0; d < devices; ++d)
    problem.devices.push_back(random_device(dice, limited, unequal));
  for (int k = 0; k < 2 * devices; ++k) {
    Seat seat{.device = k < devices ? k : 2 * devices - 1 - k,
              .in_flight = dice.roll(1, 4),
              .copies = 1,
              .next = {}};
    if (linked && k != devices - 1) seat.next = random_link(dice);
    problem.seats.push_back(seat);
  }
  return problem;
}

bool valid(const PartitionProblem& problem, const std::vector<int>& cuts) {
  const auto& pieces = problem.chain.pieces;
  const int stages = static_cast<int>(problem.seats.size());
  const int count = static_cast<int>(pieces.size());
  if (static_cast<int>(cuts.size()) != stages + 1 || cuts.front() != 0 || cuts.back() != count)
    return false;
  std::vector<Bytes> held(problem.devices.size(), 0);
  std::vector<Bytes> passing(problem.devices.size(), 0);
  std::vector<int> device_of(count);
  for (int k = 0; k < stages; ++k) {
    const Seat& seat = problem.seats[k];
    if (cuts[k] >= cuts[k + 1]) return false;
    if (k > 0 && pieces[cuts[k]].cut == Cut::forbidden) return false;
    for (int i = cuts[k]; i < cuts[k + 1]; ++i) {
      if (i > cuts[k] && pieces[i].cut == Cut::required) return false;
      held[seat.device] +=
          seat.copies * pieces[i].weights + pieces[i].fixed + seat.in_flight * pieces[i].stash;
      passing[seat.device] = std::max(passing[seat.device], pieces[i].passing);
      device_of[i] = seat.device;
    }
  }
  for (const Tie& tie : problem.chain.ties)
    if (device_of[tie.first] != device_of[tie.second]) held[device_of[tie.second]] += tie.bytes;
  for (std::size_t d = 0; d < held.size(); ++d)
    if (held[d] + passing[d] > problem.devices[d].memory) return false;
  return true;
}

double bottleneck_of(const PartitionProblem& problem, const std::vector<int>& cuts) {
  const auto& pieces = problem.chain.pieces;
  double most = 0;
  std::vector<double> work(problem.devices.size(), 0), hops(problem.devices.size(), 0);
  for (std::size_t k = 0; k < problem.seats.size(); ++k) {
    for (int i = cuts[k]; i < cuts[k + 1]; ++i)
      work[problem.seats[k].device] += pieces[i].work.count();
    if (k == 0) continue;
    const Seat& before = problem.seats[k - 1];
    const Bytes boundary = pieces[cuts[k]].boundary;
    if (problem.hops == Hops::hidden) {
      most = std::max(most, occupied(before.next, boundary).count());
    } else {
      hops[before.device] += hop(before.next, boundary).count();
      hops[problem.seats[k].device] += hop(before.next, boundary).count();
    }
  }
  for (std::size_t d = 0; d < work.size(); ++d)
    most = std::max(most, work[d] / problem.devices[d].speed + hops[d]);
  return most;
}

double best_by_trying(const PartitionProblem& problem) {
  const int count = static_cast<int>(problem.chain.pieces.size());
  const std::size_t stages = problem.seats.size();
  double best = -1;
  std::vector<int> cuts{0};
  const std::function<void()> go_on = [&] {
    if (cuts.size() == stages) {
      cuts.push_back(count);
      if (valid(problem, cuts)) {
        const double t = bottleneck_of(problem, cuts);
        if (best < 0 || t < best) best = t;
      }
      cuts.pop_back();
      return;
    }
    for (int next = cuts.back() + 1; next < count; ++next) {
      cuts.push_back(next);
      go_on();
      cuts.pop_back();
    }
  };
  go_on();
  return best;
}

}  // namespace troupe::schedules::testing
