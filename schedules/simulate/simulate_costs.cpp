#include "schedules/simulate/simulate_costs.h"

#include <array>
#include <cmath>
#include <string_view>

#include "core/json.h"

namespace troupe::schedules {
namespace {

// Limits costs so that sums over a billion actions stay far below a double's maximum.
constexpr double largest = 1e18;

Status check_number(std::string_view name, double number) {
  if (number >= 0 && number <= largest) return Done{};
  const auto found = std::isnan(number)   ? std::string("no number")
                     : std::isinf(number) ? std::string(number > 0 ? "infinite" : "-infinite")
                                          : shortest(number);
  return Error{std::string(name) + " is " + found + "; wanted: 0 to 1e18"};
}

Status check_link(std::string_view name, const Link& link) {
  if (auto fine = check_number(std::string(name) + ": latency", link.latency); !fine) return fine;
  // A slower link could turn a size into a time beyond the largest.
  if (link.bandwidth >= 1e-9) return Done{};
  return Error{std::string(name) + ": bandwidth is " +
               (std::isnan(link.bandwidth) ? "no number" : shortest(link.bandwidth)) +
               "; wanted: 1e-9 or more"};
}

Status check_stage(const StageCosts& stage) {
  const std::array<std::pair<std::string_view, double>, 13> numbers = {{
      {"forward", stage.forward},
      {"backward", stage.backward},
      {"backward_input", stage.backward_input},
      {"backward_weight", stage.backward_weight},
      {"recompute", stage.recompute},
      {"reduce", stage.reduce},
      {"update", stage.update},
      {"gather", stage.gather},
      {"activations", stage.activations},
      {"weight_activations", stage.weight_activations},
      {"input_activations", stage.input_activations},
      {"boundary", stage.boundary},
      {"boundary_back", stage.boundary_back},
  }};
  for (const auto& [name, number] : numbers)
    if (auto fine = check_number(name, number); !fine) return fine;
  if (stage.weight_activations > stage.activations)
    return Error{"weight_activations is " + shortest(stage.weight_activations) +
                 ", but it is a part of activations, which is " + shortest(stage.activations)};
  if (stage.input_activations > stage.activations)
    return Error{"input_activations is " + shortest(stage.input_activations) +
                 ", but it is a part of activations, which is " + shortest(stage.activations)};
  return Done{};
}

Status check_count(std::string_view name, std::size_t found, std::size_t wanted) {
  if (found == wanted) return Done{};
  return Error{std::string(name) + " has " + std::to_string(found) +
               " entries; wanted: " + std::to_string(wanted)};
}

}  // namespace

Costs uniform_costs(int devices, int chunks, const StageCosts& device, const Link& link) {
  auto stage = device;
  for (double StageCosts::*part :
       {&StageCosts::forward, &StageCosts::backward, &StageCosts::backward_input,
        &StageCosts::backward_weight, &StageCosts::recompute, &StageCosts::reduce,
        &StageCosts::update, &StageCosts::gather, &StageCosts::activations,
        &StageCosts::weight_activations})
    stage.*part /= chunks;
  Costs costs;
  costs.stages.assign(static_cast<std::size_t>(devices) * static_cast<std::size_t>(chunks), stage);
  costs.link = link;
  return costs;
}

Status check_costs(const Costs& costs, int stages, int devices) {
  const auto device_count = static_cast<std::size_t>(devices);
  if (auto fine =
          check_count("costs.stages", costs.stages.size(), static_cast<std::size_t>(stages));
      !fine)
    return fine;
  for (std::size_t stage = 0; stage < costs.stages.size(); ++stage)
    if (auto fine = check_stage(costs.stages[stage]); !fine)
      return within("costs of stage " + std::to_string(stage), fine.error());

  if (!costs.slowness.empty()) {
    if (auto fine = check_count("costs.slowness", costs.slowness.size(), device_count); !fine)
      return fine;
    for (const double slowness : costs.slowness)
      if (!(slowness > 0 && slowness <= 1e6))
        return Error{"costs.slowness holds " + shortest(slowness) +
                     "; wanted: more than 0, at most 1e6"};
  }

  if (auto fine = check_link("costs.link", costs.link); !fine) return fine;
  if (!costs.links.empty()) {
    if (auto fine = check_count("costs.links", costs.links.size(), device_count); !fine)
      return fine;
    for (const auto& row : costs.links) {
      if (auto fine = check_count("a row of costs.links", row.size(), device_count); !fine)
        return fine;
      for (const auto& link : row)
        if (auto fine = check_link("costs.links", link); !fine) return fine;
    }
  }

  if (auto fine = check_number("costs.launch", costs.launch); !fine) return fine;
  if (!(costs.overlap >= 0 && costs.overlap <= 1))
    return Error{"costs.overlap is " + shortest(costs.overlap) + "; wanted: 0 to 1"};
  if (costs.landing_slots < 0 || costs.landing_slots > 1024)
    return Error{"costs.landing_slots is " + std::to_string(costs.landing_slots) +
                 "; wanted: 1 to 1024, or 0 for no bound"};
  return Done{};
}

Stash stash_of(Action action, const StageCosts& stage) {
  switch (action.kind) {
    case Kind::forward:
      return {action.flags & Action::checkpointed ? stage.input_activations : stage.activations, 0};
    case Kind::recompute:
      return {stage.activations - stage.input_activations, 0};
    case Kind::backward:
      return {0, stage.activations};
    case Kind::backward_input:
      return {0, stage.activations - stage.weight_activations};
    case Kind::backward_weight:
      return {0, stage.weight_activations};
    case Kind::give:
    case Kind::update:
    case Kind::gather:
    case Kind::release:
      return {};
  }
  return {};
}

double time_of(Kind kind, const StageCosts& stage) {
  switch (kind) {
    case Kind::forward:
      return stage.forward;
    case Kind::backward:
      return stage.backward;
    case Kind::backward_input:
      return stage.backward_input;
    case Kind::backward_weight:
      return stage.backward_weight;
    case Kind::recompute:
      return stage.recompute;
    case Kind::give:
      return stage.reduce;
    case Kind::update:
      return stage.update;
    case Kind::gather:
      return stage.gather;
    case Kind::release:
      return 0;
  }
  return 0;
}

}  // namespace troupe::schedules
