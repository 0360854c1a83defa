#include "schedules/generators/placement.h"

#include <utility>

namespace troupe::schedules {

Route looped(int stages, int devices) {
  Route route(stages);
  for (int stage = 0; stage < stages; ++stage)
    route[stage] = static_cast<std::uint16_t>(stage % devices);
  return route;
}

Route snaked(int stages, int devices) {
  Route route = looped(stages, devices);
  for (int stage = 0; stage < stages; ++stage)
    if (stage / devices % 2 == 1)
      route[stage] = static_cast<std::uint16_t>(devices - 1 - route[stage]);
  return route;
}

Route reversed(const Route& route, int devices) {
  Route other = route;
  for (auto& device : other) device = static_cast<std::uint16_t>(devices - 1 - device);
  return other;
}

Schedule empty_schedule(std::string name, PipelineShape shape, std::vector<Route> routes) {
  Schedule schedule;
  schedule.name = std::move(name);
  schedule.stages = shape.stages;
  schedule.micro_batches = shape.micro_batches;
  schedule.route_of.resize(routes.size());
  for (std::size_t q = 0; q < routes.size(); ++q)
    schedule.route_of[q] = static_cast<std::uint16_t>(q);
  schedule.routes = std::move(routes);
  schedule.lanes.resize(shape.devices());
  return schedule;
}

}  // namespace troupe::schedules
