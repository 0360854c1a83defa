#include "actors/decide/link_waits.h"

#include <algorithm>
#include <map>

namespace troupe::actors {

void LinkWaits::attempt_begins(std::vector<std::string> nodes, int replicas) {
  nodes_ = std::move(nodes);
  in_replica_ = nodes_.size() / static_cast<std::size_t>(replicas);
  free_.assign(nodes_.size(), {});
}

void LinkWaits::interrupted() { std::ranges::fill(free_, std::nullopt); }

std::vector<LinkWait> LinkWaits::add(const TimedRound& round) {
  std::map<Stage, std::size_t> holders;  // The device that has a stage.
  for (std::size_t i = 0; i < round.devices.size(); ++i)
    for (const auto& timed : round.devices[i])
      holders.try_emplace({i / in_replica_, timed.action.stage}, i);
  std::map<std::pair<std::string, std::string>, std::chrono::nanoseconds> found;
  for (std::size_t i = 0; i < round.devices.size(); ++i) {
    for (const auto& [action, start, end, is_held_up] : round.devices[i]) {
      const auto free = std::exchange(free_.at(i), end);
      const bool is_forward = action.kind == schedules::Kind::forward;
      const bool receives = is_forward || schedules::gives_input_gradient(action.kind);
      if (!free || !receives || is_held_up || start <= *free) continue;
      const auto sender = holders.find({i / in_replica_, action.stage + (is_forward ? -1 : 1)});
      if (sender == holders.end() || nodes_[sender->second] == nodes_[i]) continue;
      found[{nodes_[sender->second], nodes_[i]}] += start - *free;
    }
  }
  std::vector<LinkWait> waits;
  for (const auto& [ends, time] : found)
    waits.push_back({ends.first, ends.second, time / round.steps});
  return waits;
}

}  // namespace troupe::actors
