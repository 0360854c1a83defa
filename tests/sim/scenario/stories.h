#pragma once

#include "tests/sim/scenario.h"
#include "tests/sim/scenario/drawing.h"

/// Faults that come together, or when a head decides by a certain row. Such a story leads to a
/// decision that faults by chance seldom lead to.
namespace troupe::simulation {

/// Adds some stories to a scenario. In half of the scenarios one or two are all that happens.
void draw_stories(Drawing& draw, Scenario& scenario);
void draw_no_paths(Drawing& draw, Scenario& scenario);
void draw_late_steps(Drawing& draw, Scenario& scenario);
void draw_late_supervisor(Drawing& draw, Scenario& scenario);

}  // namespace troupe::simulation
