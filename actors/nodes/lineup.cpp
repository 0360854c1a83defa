#include "actors/nodes/lineup.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <tuple>
#include <utility>

namespace troupe::actors {

namespace {

// More cores make no node faster; larger claims are not believed.
constexpr int most_cores = 1000;

/// Returns how many cores of the fastest processor each node is worth. The processor says nothing
/// about a node that computes on GPUs.
std::vector<int> cores_of(const std::vector<NodeHere>& nodes) {
  const bool has_gpus =
      std::ranges::any_of(nodes, [](const NodeHere& node) { return !node.gpus.empty(); });
  const auto levels = core_levels(nodes, &Speed::plain);
  std::vector<int> all;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const int cores = std::min(nodes[i].inventory.cores, most_cores);
    all.push_back(std::max(1, static_cast<int>(std::lround(cores * (has_gpus ? 1 : levels[i])))));
  }
  return all;
}

/// Returns how many of these devices a node had.
int had(const Lineup& before, const NodeHere& node, int first, int last) {
  int count = 0;
  for (int device = first; device < last; ++device) {
    const auto i = static_cast<std::size_t>(device);
    if (i >= before.placement.stages.size()) break;
    const auto process = static_cast<std::size_t>(before.placement.stages[i]);
    count += before.nodes[process].incarnation == node.incarnation ? 1 : 0;
  }
  return count;
}

/// Returns the node of each process. The pair that keeps most devices is chosen first.
std::vector<std::size_t> seat(const std::vector<NodeHere>& nodes, const Shares& shares,
                              const Lineup& before) {
  struct Claim {
    int keeps = 0;
    std::size_t process = 0, node = 0;
  };
  const auto cores = cores_of(nodes);
  std::vector<Claim> claims;
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    if (std::ranges::count(before.nodes, nodes[node].incarnation, &NodeHere::incarnation) == 0)
      continue;
    for (std::size_t process = 0; process < shares.cores.size(); ++process)
      if (cores[node] == shares.cores[process])
        claims.push_back({had(before, nodes[node], shares.cuts[process], shares.cuts[process + 1]),
                          process, node});
  }
  std::ranges::sort(claims, [](const Claim& a, const Claim& b) {
    return std::tuple(-a.keeps, a.process, a.node) < std::tuple(-b.keeps, b.process, b.node);
  });
  std::vector<std::size_t> seats(shares.cores.size(), nodes.size());
  std::vector<bool> is_seated(nodes.size());
  const auto take_seat = [&](std::size_t process, std::size_t node) {
    if (seats[process] != nodes.size() || is_seated[node]) return;
    seats[process] = node;
    is_seated[node] = true;
  };
  for (const auto& [keeps, process, node] : claims)
    if (keeps > 0) take_seat(process, node);
  for (std::size_t process = 0; process < seats.size(); ++process)
    for (std::size_t node = 0; node < nodes.size() && seats[process] == nodes.size(); ++node)
      if (cores[node] == shares.cores[process]) take_seat(process, node);
  return seats;
}

}  // namespace

Sharing sharing_of(const RunSpec& spec, const std::vector<NodeHere>& nodes, int most) {
  Sharing sharing;
  sharing.most = most;
  const int devices = spec.round(0, 1)->devices();
  for (int device = 0; device < devices * spec.replicas(); ++device)
    sharing.work.push_back(
        spec.work.empty() ? 1 : spec.work[static_cast<std::size_t>(device % devices)]);
  sharing.cores = cores_of(nodes);
  std::ranges::sort(sharing.cores, std::greater<>());
  return sharing;
}

Lineup line_up(const RunSpec& spec, const std::vector<NodeHere>& nodes, const Shares& shares,
               const Lineup& before) {
  Lineup lineup;
  std::vector<int> process_of;  // Indexed by replica, then device.
  for (const std::size_t node : seat(nodes, shares, before)) {
    const int process = static_cast<int>(lineup.nodes.size());
    lineup.nodes.push_back(nodes[node]);
    process_of.resize(static_cast<std::size_t>(shares.cuts[lineup.nodes.size()]), process);
  }
  lineup.placement = place(spec, std::move(process_of), static_cast<int>(lineup.nodes.size()));
  lineup.busiest = shares.busiest;
  const auto round = spec.round(0, 1);
  lineup.stages.resize(lineup.placement.stages.size());
  for (int stage = 0; stage < round->schedule.stages; ++stage)
    for (const auto& holder : holders_of(*round, stage))
      lineup.stages[static_cast<std::size_t>(holder.replica * round->devices() + holder.device)]
          .push_back(stage);
  return lineup;
}

Error too_few(std::size_t fitting, int fewest, kernels::Precision least,
              const std::vector<NodeHere>& all) {
  const std::string lack = who_lacks(least, all);
  return {"there are " + std::to_string(fitting) + " nodes" +
          (lack.empty() ? "" : " that compute in " + std::string(to_string(least))) +
          ", but the run wants " + std::to_string(fewest) + " at least (elastic.nodes)" +
          (lack.empty()
               ? ""
               : "; " + lack + "; they can be used with precision.compute = \"" +
                     std::string(to_string(least)) + "\" named: the same bits, though slowly")};
}

std::string to_text(const Lineup& lineup) {
  std::string text;
  for (std::size_t i = 0; i < lineup.nodes.size(); ++i) {
    text += (text.empty() ? "" : "; ") + lineup.nodes[i].name + ": device";
    for (std::size_t device = 0; device < lineup.placement.stages.size(); ++device)
      if (lineup.placement.stages[device] == static_cast<int>(i))
        text += " " + std::to_string(device);
  }
  return text;
}

}  // namespace troupe::actors
