#include "schedules/simulate/simulate_bounds.h"

#include <algorithm>
#include <limits>

#include "schedules/simulate/simulator.h"

namespace troupe::schedules {
namespace {

/// The load of a device, and the shortest times before and after it.
struct Load {
  double all = 0;
  double to_gradients = 0;  // Without W's, which may follow the last gradient.
  double head = std::numeric_limits<double>::infinity();
  double tail = std::numeric_limits<double>::infinity();
};

/// The shortest durations of a pass on a device.
struct PassTimes {
  double forward;
  double gradient;  // Until the input gradient exists.
  double backward;  // Both halves.
};

PassTimes pass_times(const Costs& costs, std::size_t stage, std::size_t device) {
  const auto& cost = costs.stages[stage];
  const double slowness = costs.slowness_of(device);
  const auto time = [&](double work) { return costs.launch + slowness * work; };
  const double fused = time(cost.backward);
  const double input = time(cost.backward_input);
  return {time(cost.forward), std::min(fused, input),
          std::min(fused, input + time(cost.backward_weight))};
}

void add_route(const Costs& costs, const Route& route, double passes, std::vector<Load>& loads) {
  double head = 0, tail = 0;
  for (std::size_t stage = 0; stage < route.size(); ++stage) {
    if (stage > 0) {
      const auto& before = costs.stages[stage - 1];
      head += costs.travel(route[stage - 1], route[stage], before.boundary);
      tail += costs.travel(route[stage], route[stage - 1], before.boundary_back);
    }
    auto& load = loads[route[stage]];
    const auto times = pass_times(costs, stage, route[stage]);
    load.head = std::min(load.head, head);
    load.tail = std::min(load.tail, tail);
    load.all += passes * (times.forward + times.backward);
    load.to_gradients += passes * (times.forward + times.gradient);
    head += times.forward;
    tail += times.gradient;
  }
}

}  // namespace

Peak peak_of(const Lane& lane, const Costs& costs) {
  Peak peak;
  double held = 0, given_by_group = 0;
  for (std::size_t position = 0; position < lane.size(); ++position) {
    const auto stash = stash_of(lane[position], costs.stages[lane[position].stage]);
    held += stash.taken;
    if (held > peak.stash) peak = {held, static_cast<int>(position)};
    given_by_group += stash.given;
    if (grouped_with_next(lane, position)) continue;
    held -= given_by_group;
    given_by_group = 0;
  }
  return peak;
}

LowerBound lower_bound(const Schedule& schedule, const Costs& costs) {
  std::vector<Load> loads(schedule.lanes.size());
  const auto cycle = schedule.route_of.size();
  const auto micro_batches = static_cast<std::size_t>(schedule.micro_batches);
  std::vector<double> passes(schedule.routes.size());
  for (std::size_t place = 0; place < cycle; ++place) {
    const auto taking_it = (micro_batches + cycle - 1 - place) / cycle;
    passes[schedule.route_of[place]] += static_cast<double>(taking_it);
  }
  for (std::size_t route = 0; route < schedule.routes.size(); ++route)
    if (passes[route] > 0) add_route(costs, schedule.routes[route], passes[route], loads);

  // A group of many actions hides at most this fraction of its members.
  const double visible = 1 - costs.overlap;
  LowerBound bound;
  for (const auto& load : loads) {
    if (load.all == 0) continue;
    bound.period = std::max(bound.period, visible * load.all);
    bound.makespan = std::max({bound.makespan, load.head + visible * load.all,
                               load.head + visible * load.to_gradients + load.tail});
  }
  return bound;
}

}  // namespace troupe::schedules
