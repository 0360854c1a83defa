#include "actors/lineup.h"

#include <algorithm>
#include <utility>

namespace troupe::actors {

Lineup line_up(const RunSpec& spec, std::vector<NodeHere> nodes, int most) {
  Lineup lineup;
  lineup.placement = place(spec, std::min(most, static_cast<int>(nodes.size())));
  // Those without a device have no part in it.
  const int used = 1 + *std::ranges::max_element(lineup.placement.stages);
  lineup.placement.processes = used + 1;
  nodes.resize(static_cast<std::size_t>(used));
  lineup.nodes = std::move(nodes);
  return lineup;
}

double busiest(const Lineup& lineup) {
  double most = 0;
  for (std::size_t i = 0; i < lineup.nodes.size(); ++i) {
    const auto devices = std::ranges::count(lineup.placement.stages, static_cast<int>(i));
    most = std::max(most, static_cast<double>(devices) / lineup.nodes[i].inventory.cores);
  }
  return most;
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
