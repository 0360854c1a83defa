#include "actors/lineup.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "schedules/partition_order.h"

namespace troupe::actors {

namespace {

// Beyond them nobody is any faster; who says that it has more is not believed.
constexpr int most_cores = 1000;

/// A node is to the devices of a run what a device is to the layers of a model.
schedules::OrderProblem problem_of(const RunSpec& spec, const std::vector<NodeHere>& nodes,
                                   int used) {
  schedules::OrderProblem problem;
  const int devices = spec.round(0, 1)->devices();
  for (int device = 0; device < devices * spec.replicas(); ++device) {
    schedules::Piece piece;
    piece.work = schedules::Seconds(
        spec.work.empty() ? 1 : spec.work[static_cast<std::size_t>(device % devices)]);
    problem.problem.chain.pieces.push_back(piece);
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const int cores = std::min(nodes[i].inventory.cores, most_cores);
    problem.problem.devices.push_back({.speed = static_cast<double>(cores)});
    problem.groups.push_back({static_cast<int>(i)});
  }
  problem.problem.seats.resize(static_cast<std::size_t>(used));
  return problem;
}

}  // namespace

Lineup line_up(const RunSpec& spec, std::vector<NodeHere> nodes, int most) {
  const int used = std::min({most, static_cast<int>(nodes.size()), spec.devices()});
  const auto found = schedules::partition_any_order(problem_of(spec, nodes, used));
  assert(found && "a chain that wants no memory fits");
  Lineup lineup;
  std::vector<int> process_of;  // By replica, then device.
  for (int process = 0; process < used; ++process) {
    const auto seat = static_cast<std::size_t>(process);
    lineup.nodes.push_back(nodes[static_cast<std::size_t>(found->devices[seat])]);
    process_of.resize(static_cast<std::size_t>(found->partition.cuts[seat + 1]), process);
  }
  lineup.placement = place(spec, std::move(process_of), used);
  lineup.busiest = found->partition.bottleneck.count();
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
