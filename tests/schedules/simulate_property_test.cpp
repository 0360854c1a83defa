#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

#include "catch.h"
#include "core/random.h"
#include "schedules/generators/registry.h"
#include "schedules/operators.h"
#include "schedules/simulate/simulate.h"
#include "schedules/simulate/simulate_bounds.h"
#include "tables.h"

using namespace troupe;
using namespace troupe::schedules;

namespace {

/// Calls `body` with every `stride`-th of the valid named synchronous schedules with 1 to 8 devices
/// and 1 to 3P + 3 micro-batches.
void for_each_shape(int stride, const std::function<void(const Schedule&)>& body) {
  int count = 0;
  for (int devices = 1; devices <= 8; ++devices)
    for (int micro_batches = 1; micro_batches <= 3 * devices + 3; ++micro_batches)
      for (const auto& named : named_schedules())
        for (const int chunks : {1, 2, 3, 4}) {
          if (named.mode != Mode::synchronous) continue;
          const auto made = generate(
              named.name,
              {.stages = chunks * devices, .micro_batches = micro_batches, .chunks = chunks});
          if (!made || made->devices() != devices || count++ % stride != 0) continue;
          INFO(made->name << ", " << devices << " devices, " << micro_batches << " micro-batches");
          body(*made);
        }
}

double random_cost(std::uint32_t& seed) {
  return 0.25 + uniform(philox({seed++, 0, 0, 0}, {7, 7})[0]);
}

/// Returns costs that differ for every stage, device and pair of devices.
Costs uneven_costs(const Schedule& schedule, std::uint32_t seed) {
  Costs costs;
  for (int stage = 0; stage < schedule.stages; ++stage) {
    const double forward = random_cost(seed), input = random_cost(seed);
    costs.stages.push_back({.forward = forward,
                            .backward = input + 0.8,
                            .backward_input = input,
                            .backward_weight = random_cost(seed),
                            .reduce = random_cost(seed),
                            .update = random_cost(seed),
                            .activations = random_cost(seed),
                            .weight_activations = 0.125,
                            .boundary = 1,
                            .boundary_back = static_cast<double>(stage % 3) / 2});
  }
  for (int device = 0; device < schedule.devices(); ++device) {
    costs.slowness.push_back(random_cost(seed));
    auto& row = costs.links.emplace_back();
    for (int other = 0; other < schedule.devices(); ++other)
      row.push_back({.latency = 0.25 * random_cost(seed), .bandwidth = 8});
  }
  costs.launch = 0.0625;
  costs.overlap = 0.5;
  return costs;
}

/// An independent implementation of the rules: the longest path through the graph in which each
/// action depends on the previous one, its inputs and its reduction. Groups are one node.
class LongestPath {
 public:
  LongestPath(const Schedule& schedule, const Costs& costs) : schedule_(schedule), costs_(costs) {
    for (int device = 0; device < schedule.devices(); ++device) {
      bool joins = false;
      for (const auto action : schedule.lanes[static_cast<std::size_t>(device)]) {
        if (!joins) nodes_.push_back({device, {}, -1});
        nodes_.back().actions.push_back(action);
        joins = action.flags & Action::with_next;
        node_of_[{device, action.stage, action.kind, action.micro_batch}] = nodes_.size() - 1;
      }
    }
  }

  double length() {
    double longest = 0;
    for (std::size_t node = 0; node < nodes_.size(); ++node) longest = std::max(longest, end(node));
    return longest;
  }

 private:
  struct Node {
    int device;
    std::vector<Action> actions;
    double end;
  };

  std::size_t node(Kind kind, int stage, std::uint32_t m) const {
    const int device = schedule_.route(m)[static_cast<std::size_t>(stage)];
    auto found = node_of_.find({device, static_cast<std::uint16_t>(stage), kind, m});
    if (found == node_of_.end() && kind == Kind::backward)
      found = node_of_.find({device, static_cast<std::uint16_t>(stage), Kind::backward_input, m});
    return found->second;
  }

  bool is_give(std::size_t node) const { return nodes_[node].actions[0].kind == Kind::give; }

  /// Returns the end of the nearest earlier node on the same device that is (or is not) an A.
  double end_before(std::size_t node, bool give) {
    const int device = nodes_[node].device;
    while (node-- > 0 && nodes_[node].device == device)
      if (is_give(node) == give) return end(node);
    return 0;
  }

  double arrival(std::size_t from, int to, double boundary) {
    return end(from) + costs_.travel(static_cast<std::size_t>(nodes_[from].device),
                                     static_cast<std::size_t>(to), boundary);
  }

  double input(Action action, int device) {
    const auto& stages = costs_.stages;
    if (action.kind == Kind::forward && action.stage > 0)
      return arrival(node(Kind::forward, action.stage - 1, action.micro_batch), device,
                     stages[action.stage - 1u].boundary);
    if (gives_input_gradient(action.kind) && action.stage + 1 < schedule_.stages)
      return arrival(node(Kind::backward, action.stage + 1, action.micro_batch), device,
                     stages[action.stage].boundary_back);
    if (action.kind != Kind::update) return 0;
    double latest = 0;
    for (std::size_t other = 0; other < nodes_.size(); ++other)
      if (is_give(other) && nodes_[other].actions[0].stage == action.stage)
        latest = std::max(latest, end(other));
    return latest;
  }

  double end(std::size_t index) {
    if (nodes_[index].end >= 0) return nodes_[index].end;
    const auto& node = nodes_[index];
    const auto device = static_cast<std::size_t>(node.device);
    double start = end_before(index, false);
    if (is_give(index)) {
      start = std::max(start, end_before(index, true));
      return nodes_[index].end = start + costs_.stages[node.actions[0].stage].reduce;
    }
    double sum = 0, longest = 0;
    for (const auto action : node.actions) {
      start = std::max(start, input(action, node.device));
      const double time = costs_.launch + costs_.slowness[device] *
                                              time_of(action.kind, costs_.stages[action.stage]);
      sum += time;
      longest = std::max(longest, time);
    }
    return nodes_[index].end = start + longest + (1 - costs_.overlap) * (sum - longest);
  }

  const Schedule& schedule_;
  const Costs& costs_;
  std::vector<Node> nodes_;
  std::map<std::tuple<int, std::uint16_t, Kind, std::uint32_t>, std::size_t> node_of_;
};

}  // namespace

TEST_CASE("the makespan is the longest path through the dependency graph", "[schedules]") {
  for_each_shape(13, [](const Schedule& passes) {
    const auto schedule = with_updates(passes);
    const auto costs = uneven_costs(schedule, 1);
    const auto simulation = play(schedule, costs);
    CHECK(simulation.makespan == Approx(LongestPath(schedule, costs).length()).epsilon(1e-12));
  });
}

TEST_CASE("devices work or wait at all times and no lower bound is beaten", "[schedules]") {
  for_each_shape(7, [](const Schedule& passes) {
    const auto schedule = with_updates(passes);
    auto costs = uneven_costs(schedule, 2);
    costs.overlap = 0;
    const auto simulation = play(schedule, costs);
    double largest_load = 0;
    for (std::size_t device = 0; device < simulation.devices.size(); ++device) {
      const auto& use = simulation.devices[device];
      double work = 0, largest_stash = 0;
      for (const auto action : schedule.lanes[device]) {
        largest_stash = std::max(largest_stash, stash_of(action, costs.stages[action.stage]).taken);
        if (action.kind != Kind::give)
          work += costs.launch +
                  costs.slowness[device] * time_of(action.kind, costs.stages[action.stage]);
      }
      CHECK(use.busy == Approx(work));
      CHECK(use.busy + use.idle.total() == Approx(simulation.makespan));
      CHECK(use.peak >= largest_stash);
      largest_load = std::max(largest_load, use.busy);
    }
    CHECK(simulation.period >= largest_load * (1 - 1e-12));
    CHECK(simulation.makespan >= simulation.period * (1 - 1e-12));

    const auto bound = lower_bound(schedule, costs);
    CHECK(simulation.makespan >= bound.makespan * (1 - 1e-12));
    CHECK(simulation.period >= bound.period * (1 - 1e-12));
  });
}

TEST_CASE("the critical path has no slack and no gap", "[schedules]") {
  for_each_shape(29, [](const Schedule& passes) {
    const auto schedule = with_updates(passes);
    const auto simulation = play(schedule, uneven_costs(schedule, 3));
    REQUIRE_FALSE(simulation.critical_path.empty());
    double last_end = 0;
    for (const auto place : simulation.critical_path) {
      const auto& timed = simulation.lanes[static_cast<std::size_t>(place.device)]
                                          [static_cast<std::size_t>(place.position)];
      CHECK(timed.slack == 0);
      CHECK(timed.start >= last_end);
      CHECK(timed.start - last_end <= 1);  // At most the longest hop.
      last_end = timed.end;
    }
    CHECK(last_end == simulation.makespan);
  });
}

TEST_CASE("another landing slot never makes a step slower", "[schedules]") {
  for_each_shape(17, [](const Schedule& schedule) {
    auto costs = uneven_costs(schedule, 4);
    double before = 0;
    for (const int slots : {1, 2, 3, 0}) {
      costs.landing_slots = slots;
      const auto simulation = play(schedule, costs);
      if (slots != 1) CHECK(simulation.makespan <= before * (1 + 1e-12));
      before = simulation.makespan;
    }
  });
}
