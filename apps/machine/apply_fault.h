#pragma once

#include "actors/chaos.h"
#include "actors/pace.h"

namespace troupe::apps {

/// Injects a fault into this process: kills it, stops it for a while, or slows its computing.
void apply_fault(const actors::Chaos& chaos, actors::Pace& pace);

}  // namespace troupe::apps
