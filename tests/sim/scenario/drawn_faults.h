#pragma once

#include <vector>

#include "tests/sim/scenario.h"
#include "tests/sim/scenario/drawing.h"

/// Faults that a seed draws by chance.
namespace troupe::simulation {

/// Returns about as long as the run takes if nothing happens.
Scheduler::Duration usual_length(const Scenario& scenario);
Fault draw_fault(Drawing& draw, Fault::Kind kind, const Scenario& scenario);
std::vector<Fault> draw_faults(Drawing& draw, const Scenario& scenario);

/// Control sockets take nothing now and then, most often those of the head.
void fill_queues(Drawing& draw, Scenario& scenario);
/// A loop or an actor is stuck now and then, most often of the head. In half of the cases a node
/// goes meanwhile: some parts of the head know it before others do.
void get_stuck(Drawing& draw, Scenario& scenario);
/// The head hears a node late, while the others go on without it: its replica hands its gradients
/// to the other one, whose optimizers report steps whose losses are still on their way.
void delay_reports(Drawing& draw, Scenario& scenario);

}  // namespace troupe::simulation
