#include "schedules/partition/partition.h"

#include <algorithm>
#include <cmath>

#include "core/byte_text.h"
#include "schedules/partition/partition_methods.h"

namespace troupe::schedules {

namespace {

constexpr int most_pieces = 1 << 20;
constexpr int most_seats = 1 << 16;
constexpr int most_ties = 1024;
constexpr Bytes most_bytes = Bytes{1} << 50;
constexpr double longest_work = 1e9;
// The most (device, prefix, suffix) triples for the folded method; larger Vs use borders.
constexpr std::int64_t largest_fold = std::int64_t{1} << 22;
// The longest straight pipeline whose equally good cuts are also evened out.
constexpr std::size_t most_evened = 256;

/// The algorithm that cuts a problem.
enum class Method { straight, folded, borders };

Method method_for(const PartitionProblem& problem, const ChainSums& sums) {
  const int seats = static_cast<int>(problem.seats.size());
  const int used = seats / 2;
  std::vector<bool> taken(problem.devices.size());
  bool straight = true;
  bool folded = problem.hops == Hops::hidden && seats % 2 == 0;
  for (int k = 0; k < seats; ++k) {
    const int device = problem.seats[k].device;
    straight = straight && !taken[device];
    folded = folded && (k < used ? !taken[device] : device == problem.seats[seats - 1 - k].device);
    taken[device] = true;
  }
  if (straight) return Method::straight;
  folded = folded && std::int64_t{used} * sums.size() * sums.size() <= largest_fold;
  return folded ? Method::folded : Method::borders;
}

bool plausible(Bytes bytes) { return bytes >= 0 && bytes <= most_bytes; }

Status check_chain(const Chain& chain) {
  const int count = static_cast<int>(chain.pieces.size());
  if (count == 0) return Error{"there is nothing to cut: the chain has no units"};
  if (count > most_pieces)
    return Error{"the chain has " + std::to_string(count) + " units; at most " +
                 std::to_string(most_pieces) + " can be cut"};
  for (int i = 0; i < count; ++i) {
    const Piece& piece = chain.pieces[i];
    const bool sound = piece.work.count() >= 0 && piece.work.count() <= longest_work &&
                       plausible(piece.weights) && plausible(piece.fixed) &&
                       plausible(piece.stash) && plausible(piece.passing) &&
                       plausible(piece.boundary) && plausible(piece.reduced);
    if (!sound)
      return Error{"unit " + std::to_string(i) +
                   " has a cost that is negative, not finite or absurdly large"};
  }
  if (chain.ties.size() > most_ties)
    return Error{std::to_string(chain.ties.size()) + " pairs of units are tied; at most " +
                 std::to_string(most_ties) + " can be planned"};
  for (const Tie& tie : chain.ties)
    if (tie.first < 0 || tie.first >= tie.second || tie.second >= count || !plausible(tie.bytes))
      return Error{"units " + std::to_string(tie.first) + " and " + std::to_string(tie.second) +
                   " cannot be tied"};
  return Done{};
}

Status check_seats(const PartitionProblem& problem) {
  if (problem.seats.empty() || problem.seats.size() > most_seats)
    return Error{"a pipeline has 1 to " + std::to_string(most_seats) + " stages, not " +
                 std::to_string(problem.seats.size())};
  for (std::size_t d = 0; d < problem.devices.size(); ++d) {
    const Capacity& device = problem.devices[d];
    if (!(device.speed >= 1e-6 && device.speed <= 1e6))
      return Error{"device " + std::to_string(d) + " has a speed outside of 1e-6 to 1e6"};
  }
  for (std::size_t k = 0; k < problem.seats.size(); ++k) {
    const Seat& seat = problem.seats[k];
    const bool sound = seat.device >= 0 && seat.device < static_cast<int>(problem.devices.size()) &&
                       seat.in_flight >= 0 && seat.copies >= 0 && seat.next.bandwidth > 0 &&
                       seat.next.latency >= 0;
    if (!sound) return Error{"stage " + std::to_string(k) + " has no sound place"};
  }
  return Done{};
}

/// Checks that sums over the chain stay within 64 bits for any seat.
Status check_sums(const PartitionProblem& problem) {
  double most = 0;
  int in_flight = 0;
  int copies = 0;
  for (const Seat& seat : problem.seats) {
    in_flight = std::max(in_flight, seat.in_flight);
    copies = std::max(copies, seat.copies);
  }
  for (const Piece& piece : problem.chain.pieces)
    most += static_cast<double>(piece.weights) * copies + static_cast<double>(piece.fixed) +
            static_cast<double>(piece.stash) * in_flight + static_cast<double>(piece.reduced);
  for (const Tie& tie : problem.chain.ties) most += static_cast<double>(tie.bytes);
  if (most > 0x1p61) return Error{"the model is absurdly large: more than 2^61 bytes in all"};
  return Done{};
}

/// Checks that there are enough units for the stages and enough stages for the required cuts.
Status check_counts(const PartitionProblem& problem, const ChainSums& sums) {
  const int seats = static_cast<int>(problem.seats.size());
  if (sums.size() < seats)
    return Error{std::to_string(seats) +
                 " stages need as many units that can be parted, and the "
                 "model has " +
                 std::to_string(sums.size()) + "; use at most " + std::to_string(sums.size()) +
                 " stages"};
  int parts = 0;
  for (int i = 0; i < sums.size(); i = sums.next_required(i)) ++parts;
  if (parts > seats)
    return Error{"the cuts that are required make " + std::to_string(parts) +
                 " stages, and there are " + std::to_string(seats) + "; use at least " +
                 std::to_string(parts) + " stages"};
  if (problem.hops == Hops::exposed && !StraightCutter::searchable(seats, sums.size()))
    return Error{std::to_string(sums.size()) + " units on " + std::to_string(seats) +
                 " stages are too many to cut where hops are exposed; merge units"};
  return Done{};
}

/// Returns each device's time if units could be cut anywhere, slightly less because of rounding.
double even_share(const PartitionProblem& problem, const ChainSums& sums) {
  std::vector<bool> used(problem.devices.size());
  double speed = 0;
  for (const Seat& seat : problem.seats) {
    if (!used[seat.device]) speed += problem.devices[seat.device].speed;
    used[seat.device] = true;
  }
  return sums.work(0, sums.size()) / speed * (1 - 1e-9);
}

std::optional<std::vector<int>> best_cuts(const PartitionProblem& problem, const ChainSums& sums) {
  const auto measure = [&](const std::vector<int>& places) {
    return bottleneck(problem, sums, places);
  };
  const double low = even_share(problem, sums);
  switch (method_for(problem, sums)) {
    case Method::straight: {
      const StraightCutter cutter(problem, sums);
      auto cuts = least_bottleneck(
          low, [&](double t) { return cutter.cut(t); }, measure);
      if (cuts && problem.seats.size() <= most_evened) cuts = improve_borders(problem, sums, *cuts);
      return cuts;
    }
    case Method::folded: {
      auto cuts = least_bottleneck(
          low, [&](double t) { return cut_folded(problem, sums, t); }, measure);
      if (cuts) cuts = improve_borders(problem, sums, *cuts);
      return cuts;
    }
    case Method::borders: {
      auto cuts = cut_anyhow(problem, sums);
      if (score(problem, sums, cuts).excess > 0) return std::nullopt;
      return cuts;
    }
  }
  return std::nullopt;
}

/// Returns the cuts at which the devices lack the least memory; ignores times.
std::vector<int> closest_cuts(const PartitionProblem& problem, const ChainSums& sums) {
  const Method method = method_for(problem, sums);
  if (method == Method::borders) return cut_anyhow(problem, sums);
  const auto cuts_with = [&](Bytes more) {
    PartitionProblem roomy = problem;
    roomy.hops = Hops::hidden;
    for (Capacity& device : roomy.devices)
      device.memory =
          device.memory < Capacity::unlimited - more ? device.memory + more : Capacity::unlimited;
    constexpr double any_time = std::numeric_limits<double>::infinity();
    return method == Method::straight ? StraightCutter(roomy, sums).cut(any_time)
                                      : cut_folded(roomy, sums, any_time);
  };
  Bytes too_few = 0;
  Bytes enough = Bytes{1} << 62;
  auto cuts = cuts_with(enough);
  assert(cuts && "with enough memory every chain fits that has enough units");
  while (enough - too_few > 1) {
    const Bytes middle = too_few + (enough - too_few) / 2;
    if (auto found = cuts_with(middle)) {
      cuts = std::move(found);
      enough = middle;
    } else {
      too_few = middle;
    }
  }
  return *cuts;
}

std::string describe(const PartitionProblem& problem, const Misfit& misfit) {
  const Bytes missing = misfit.needed - misfit.available;
  return "the model does not fit: at the cuts that come closest, device " +
         std::to_string(misfit.device) + " needs " + byte_text(misfit.needed) + " and has " +
         byte_text(misfit.available) + ", " + byte_text(missing) + " too few; its stage " +
         std::to_string(misfit.stage) + " holds units " + std::to_string(misfit.first) + " to " +
         std::to_string(misfit.last - 1) + " and " +
         std::to_string(problem.seats[misfit.stage].in_flight) +
         " micro-batches in flight; use more stages, smaller micro-batches, recomputation or "
         "devices with more memory";
}

}  // namespace

Status check_problem(const PartitionProblem& problem) {
  if (Status chain = check_chain(problem.chain); !chain) return chain;
  if (Status seats = check_seats(problem); !seats) return seats;
  return check_sums(problem);
}

Status check_partition(const PartitionProblem& problem) {
  if (Status sound = check_problem(problem); !sound) return sound;
  return check_counts(problem, ChainSums(problem.chain));
}

Result<Partition> partition(const PartitionProblem& problem) {
  if (Status sound = check_partition(problem); !sound) return sound.error();
  const ChainSums sums(problem.chain);
  const auto places = best_cuts(problem, sums);
  if (!places) return Error{describe(problem, closest_misfit(problem))};
  return Partition{sums.in_chain(*places), Seconds(bottleneck(problem, sums, *places))};
}

std::vector<Bytes> held_memory(const PartitionProblem& problem, const std::vector<int>& cuts) {
  const ChainSums sums(problem.chain);
  return held_memory(problem, sums, sums.merged(cuts));
}

std::vector<Seconds> busy_times(const PartitionProblem& problem, const std::vector<int>& cuts) {
  const ChainSums sums(problem.chain);
  return busy_times(problem, sums, sums.merged(cuts));
}

Misfit closest_misfit(const PartitionProblem& problem) {
  const ChainSums sums(problem.chain);
  const auto places = closest_cuts(problem, sums);
  const auto held = held_memory(problem, sums, places);
  Misfit misfit;
  Bytes most = std::numeric_limits<Bytes>::min();
  for (std::size_t d = 0; d < held.size(); ++d) {
    const Bytes excess = held[d] - problem.devices[d].memory;
    if (excess <= most) continue;
    most = excess;
    misfit.device = static_cast<int>(d);
  }
  misfit.needed = held[misfit.device];
  misfit.available = problem.devices[misfit.device].memory;
  misfit.cuts = sums.in_chain(places);
  Bytes fullest = -1;
  for (std::size_t k = 0; k < problem.seats.size(); ++k) {
    if (problem.seats[k].device != misfit.device) continue;
    const Bytes bytes = sums.memory(places[k], places[k + 1], problem.seats[k]);
    if (bytes <= fullest) continue;
    fullest = bytes;
    misfit.stage = static_cast<int>(k);
    misfit.first = misfit.cuts[k];
    misfit.last = misfit.cuts[k + 1];
  }
  return misfit;
}

}  // namespace troupe::schedules
