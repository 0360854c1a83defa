#include "schedules/generators/generators.h"
#include "schedules/operators.h"

namespace troupe::schedules {

Schedule pipedream(PipelineShape shape) {
  Schedule schedule = with_update_every(one_f_one_b(shape), 1);
  schedule.name = "pipedream";
  return schedule;
}

Schedule pipedream_2bw(PipelineShape shape) {
  // With fewer backward passes between two updates, a micro-batch could span two updates and need a
  // third version of the weights.
  Schedule schedule = with_update_every(one_f_one_b(shape), shape.devices());
  schedule.name = "2bw";
  return schedule;
}

}  // namespace troupe::schedules
