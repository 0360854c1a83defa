#include "actors/nodes/shares.h"

#include <algorithm>
#include <cassert>

#include "schedules/partition/partition_order.h"

namespace troupe::actors {

namespace {

/// Returns how many orders to try. The cost of one grows with the square of the number of nodes.
int orders_to_try(std::size_t nodes, Search search) {
  constexpr int most = 2000;
  constexpr std::size_t promptly = 80'000;
  if (search == Search::thorough) return most;
  return std::clamp(static_cast<int>(promptly / (nodes * nodes)), 3, most);
}

/// Formulates the problem like the partition of layers: nodes are its devices, devices its pieces.
schedules::OrderProblem problem_of(const Sharing& sharing) {
  schedules::OrderProblem order;
  auto& problem = order.problem;
  for (const double work : sharing.work)
    problem.chain.pieces.push_back({.work = schedules::Seconds(work)});
  for (std::size_t i = 0; i < sharing.cores.size(); ++i) {
    problem.devices.push_back({.speed = static_cast<double>(sharing.cores[i])});
    order.groups.push_back({static_cast<int>(i)});
  }
  problem.seats.resize(sharing.seats());
  return order;
}

}  // namespace

std::size_t Sharing::seats() const {
  return std::min({static_cast<std::size_t>(most), cores.size(), work.size()});
}

Sharing relevant_part(Sharing sharing) {
  sharing.cores.resize(sharing.seats());
  return sharing;
}

Shares share_out(const Sharing& whole, Search search) {
  const auto sharing = relevant_part(whole);
  auto problem = problem_of(sharing);
  problem.most_orders = orders_to_try(sharing.cores.size(), search);
  const auto found = schedules::partition_any_order(problem);
  assert(found && "a chain that wants no memory fits");
  Shares shares;
  for (std::size_t process = 0; process < problem.problem.seats.size(); ++process)
    shares.cores.push_back(sharing.cores[static_cast<std::size_t>(found->devices[process])]);
  shares.cuts = found->partition.cuts;
  shares.busiest = found->partition.bottleneck.count();
  return shares;
}

}  // namespace troupe::actors
