#pragma once

#include "schedules/schedule.h"

namespace troupe::schedules {

/// Places stage s on device s mod P; each chunk starts again at device 0.
Route looped(int stages, int devices);

/// Reverses direction after each chunk: 0 1 2 2 1 0. With two chunks this is the V, whose first and
/// last stage share device 0.
Route snaked(int stages, int devices);

/// Mirrors a route: device d becomes devices - 1 - d.
Route reversed(const Route& route, int devices);

/// Returns a schedule with this shape and these routes, and an empty lane for each device.
Schedule empty_schedule(std::string name, PipelineShape shape, std::vector<Route> routes);

}  // namespace troupe::schedules
