#include <algorithm>
#include <array>
#include <cstdint>
#include <map>

#include "schedules/check/rules.h"
#include "schedules/text.h"

namespace troupe::schedules {
namespace {

bool check_routes(const Schedule& schedule, Findings& findings) {
  const auto wrong = [&](std::string reason) {
    findings.add(Rule::placement, -1, 0, std::move(reason));
    return false;
  };
  if (schedule.stages < 1 || schedule.stages > max_stages)
    return wrong("found " + std::to_string(schedule.stages) + " stages, wanted 1 to " +
                 std::to_string(max_stages));
  if (schedule.micro_batches < 1 || schedule.micro_batches > max_micro_batches)
    return wrong("found " + std::to_string(schedule.micro_batches) +
                 " micro-batches, wanted 1 to " + std::to_string(max_micro_batches));
  std::size_t actions = 0;
  for (const Lane& lane : schedule.lanes) actions += lane.size();
  if (schedule.lanes.empty() || schedule.lanes.size() > max_stages || actions > max_actions)
    return wrong("found " + std::to_string(schedule.lanes.size()) + " devices with " +
                 std::to_string(actions) + " actions, wanted 1 to " + std::to_string(max_stages) +
                 " with at most " + std::to_string(max_actions));
  if (schedule.routes.empty() || schedule.route_of.empty())
    return wrong("there is no route from stage to stage");
  for (std::size_t q = 0; q < schedule.routes.size(); ++q) {
    const Route& route = schedule.routes[q];
    const std::string name = "route " + std::to_string(q);
    if (route.size() != static_cast<std::size_t>(schedule.stages))
      return wrong(name + " has " + std::to_string(route.size()) + " stages, the schedule " +
                   std::to_string(schedule.stages));
    const std::uint16_t last = *std::ranges::max_element(route);
    if (last >= schedule.devices())
      return wrong(name + " leads to device " + std::to_string(last) + "; the last is " +
                   std::to_string(schedule.devices() - 1));
  }
  const std::uint16_t last = *std::ranges::max_element(schedule.route_of);
  if (last >= schedule.routes.size())
    return wrong("a micro-batch takes route " + std::to_string(last) + "; the last is " +
                 std::to_string(schedule.routes.size() - 1));
  return true;
}

/// The number of passes of each kind for one stage and micro-batch.
struct Count {
  std::array<std::uint8_t, 5> of = {};  // Indexed by kind; counters saturate at 255.
  std::uint8_t checkpoints = 0;

  void add(Action action) {
    std::uint8_t& counter = of[static_cast<int>(action.kind)];
    if (counter < 255) ++counter;
    if ((action.flags & Action::checkpointed) && checkpoints < 255) ++checkpoints;
  }
  bool complete() const {
    const auto [forwards, backwards, inputs, weights, recomputes] = of;
    return forwards == 1 && inputs == weights && backwards + inputs == 1 &&
           recomputes == checkpoints;
  }
  std::string found() const {
    std::string text;
    for (std::size_t kind = 0; kind < of.size(); ++kind)
      if (of[kind] > 0)
        text += (text.empty() ? "" : ", ") + std::to_string(of[kind]) + ' ' +
                letter(static_cast<Kind>(kind));
    if (text.empty()) return "nothing";
    return checkpoints > 0 ? text + ", checkpointed" : text;
  }
};

struct Where {
  int device = 0;
  std::size_t position = 0;
};

/// Returns the last action of each cell (stage and micro-batch) that has any.
std::map<std::size_t, Where> last_places(const Schedule& schedule,
                                         const std::vector<std::size_t>& cells) {
  std::map<std::size_t, Where> places;
  for (int d = 0; d < schedule.devices(); ++d)
    for (std::size_t k = 0; k < schedule.lanes[d].size(); ++k) {
      const Action action = schedule.lanes[d][k];
      const std::size_t cell =
          std::size_t(action.stage) * schedule.micro_batches + action.micro_batch;
      if (has_micro_batch(action.kind) && std::ranges::binary_search(cells, cell))
        places[cell] = {d, k};
    }
  return places;
}

}  // namespace

bool check_shape(const Schedule& schedule, Findings& findings) {
  if (!check_routes(schedule, findings)) return false;
  for (int d = 0; d < schedule.devices(); ++d) {
    const Lane& lane = schedule.lanes[d];
    for (std::size_t k = 0; k < lane.size(); ++k) {
      const Action action = lane[k];
      if (action.stage >= schedule.stages)
        findings.add(Rule::placement, d, k,
                     to_string(action) + " is on stage " + std::to_string(action.stage) +
                         "; the last is " + std::to_string(schedule.stages - 1));
      if (action.micro_batch >= static_cast<std::uint32_t>(schedule.micro_batches))
        findings.add(Rule::placement, d, k,
                     to_string(action) + " is on micro-batch " +
                         std::to_string(action.micro_batch) + "; the last is " +
                         std::to_string(schedule.micro_batches - 1));
      const bool grouped = action.flags & Action::with_next;
      if (grouped && (k + 1 == lane.size() || !has_micro_batch(action.kind) ||
                      !has_micro_batch(lane[k + 1].kind)))
        findings.add(
            Rule::placement, d, k,
            to_string(action) + " overlaps with the next action, but there is no pass next");
    }
  }
  return findings.empty();
}

void check_placement(const Schedule& schedule, Findings& findings) {
  for (int d = 0; d < schedule.devices(); ++d) {
    const Lane& lane = schedule.lanes[d];
    for (std::size_t k = 0; k < lane.size(); ++k) {
      const Action action = lane[k];
      const bool one_micro_batch =
          has_micro_batch(action.kind) || (action.flags & Action::numbered);
      const bool here = one_micro_batch
                            ? schedule.device(action) == d
                            : std::ranges::any_of(schedule.routes, [&](const Route& route) {
                                return route[action.stage] == d;
                              });
      if (!here)
        findings.add(Rule::placement, d, k,
                     to_string(action) + " is listed on device " + std::to_string(d) +
                         ", but its route has stage " + std::to_string(action.stage) +
                         " on device " + std::to_string(schedule.device(action)));
    }
  }
}

void check_completeness(const Schedule& schedule, Findings& findings) {
  const std::size_t cells = std::size_t(schedule.stages) * schedule.micro_batches;
  std::size_t actions = 0;
  for (const Lane& lane : schedule.lanes) actions += lane.size();
  if (actions < cells) {
    // A few bytes of text can ask for billions of passes, so do not allocate a counter for each.
    findings.add(Rule::completeness, -1, 0,
                 std::to_string(schedule.stages) + " stages and " +
                     std::to_string(schedule.micro_batches) + " micro-batches need at least " +
                     std::to_string(2 * cells) + " passes, the lanes hold " +
                     std::to_string(actions) + " actions");
    return;
  }
  std::vector<Count> counts(cells);
  for (const Lane& lane : schedule.lanes)
    for (const Action action : lane)
      if (has_micro_batch(action.kind))
        counts[std::size_t(action.stage) * schedule.micro_batches + action.micro_batch].add(action);

  std::vector<std::size_t> incomplete;
  for (std::size_t cell = 0; cell < cells && incomplete.size() < max_violations; ++cell)
    if (!counts[cell].complete()) incomplete.push_back(cell);
  if (incomplete.empty()) return;
  const auto places = last_places(schedule, incomplete);
  for (const std::size_t cell : incomplete) {
    const auto stage = cell / schedule.micro_batches;
    const auto m = static_cast<std::uint32_t>(cell % schedule.micro_batches);
    const int home = schedule.route(m)[stage];
    const auto place = places.find(cell);
    const Where where =
        place == places.end() ? Where{home, schedule.lanes[home].size()} : place->second;
    findings.add(Rule::completeness, where.device, where.position,
                 "stage " + std::to_string(stage) + ", micro-batch " + std::to_string(m) + " has " +
                     counts[cell].found() +
                     "; wanted 1 F, and 1 B or 1 I and 1 W, and 1 R if F is checkpointed");
  }
}

void check_local_order(const Schedule& schedule, const PassTable& passes, Findings& findings) {
  const auto in_order = [&](std::uint32_t first, std::uint32_t then) {
    if (first == PassTable::none || then == PassTable::none || first <= then) return;
    const int device = passes.device(then);
    findings.add(Rule::local_order, device, passes.position(then),
                 "device " + std::to_string(device) + " has " + to_string(passes.action(then)) +
                     " before " + to_string(passes.action(first)) + ", which it needs");
  };
  for (int stage = 0; stage < schedule.stages; ++stage)
    for (int m = 0; m < schedule.micro_batches; ++m) {
      const std::uint32_t input = passes.input(stage, m);
      const std::uint32_t recompute = passes.recompute(stage, m);
      in_order(passes.forward(stage, m), recompute == PassTable::none ? input : recompute);
      in_order(recompute, input);
      in_order(input, passes.weight(stage, m));
    }

  // Weight gradients are summed in lane order; a fixed order keeps the sum the same bit for bit.
  for (int d = 0; d < schedule.devices(); ++d) {
    std::map<int, Action> latest;
    for (std::size_t k = 0; k < schedule.lanes[d].size(); ++k) {
      const Action action = schedule.lanes[d][k];
      if (!gives_weight_gradient(action.kind)) continue;
      const auto [entry, is_first] = latest.try_emplace(action.stage, action);
      if (!is_first && entry->second.micro_batch > action.micro_batch)
        findings.add(Rule::local_order, d, k,
                     "device " + std::to_string(d) + " has " + to_string(action) + " after " +
                         to_string(entry->second) + "; weight gradients are summed by micro-batch");
      entry->second = action;
    }
  }
}

}  // namespace troupe::schedules
