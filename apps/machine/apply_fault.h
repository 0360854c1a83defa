#pragma once

#include "actors/chaos.h"
#include "actors/pace.h"

namespace troupe::apps {

/// What a drill does to this process by itself: it is killed, stands still, or computes slowly.
void apply_fault(const actors::Chaos& chaos, actors::Pace& pace);

}  // namespace troupe::apps
