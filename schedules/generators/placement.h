#pragma once

#include "schedules/schedule.h"

namespace troupe::schedules {

/// Stage s on device s mod P: each chunk starts again at device 0.
Route looped(int stages, int devices);

/// Each chunk turns round at the end: 0 1 2 2 1 0. With two chunks this is the V, and first and
/// last stage share device 0.
Route snaked(int stages, int devices);

/// The same devices from the other end.
Route reversed(const Route& route, int devices);

/// A schedule with this shape and these routes, and an empty lane for each device.
Schedule empty_schedule(std::string name, PipelineShape shape, std::vector<Route> routes);

}  // namespace troupe::schedules
