#pragma once

#include <vector>

#include "actors/round.h"
#include "actors/run_spec.h"
#include "models/train/section.h"
#include "schedules/exchange.h"

/// How the holders of a stage turn their gradients into the stage's next weights
/// (docs/explanation/exchange.md). A stage is cut into sections, each with an optimizer. Every
/// holder sends each optimizer its section of the gradients, and each optimizer sends its section
/// of the weights to every holder. With one section per holder this is a reduce-scatter and an
/// all-gather, and the moments are sharded; with one section it is a parameter server.
namespace troupe::actors {

using schedules::Exchange;

/// Fills in the sections of a run's stages. All other fields of `spec` must be set.
void cut_stages(RunSpec& spec, Exchange exchange);

/// An optimizer's place. They are numbered by stage, then section; all stages have equally many.
struct OptimizerPlace {
  int stage = 0;
  int section = 0;
};
int optimizers_of(const RunSpec& spec);
OptimizerPlace place_of(const RunSpec& spec, int optimizer);
int optimizer_of(const RunSpec& spec, OptimizerPlace place);

/// Returns the holder on whose device the optimizer computes.
Holder home_of(const RunSpec& spec, int optimizer);

/// The part of a stage's gradients that goes to an optimizer, in the slots of that stage: the
/// optimizer's section for its own stage, and the borrowed parameters for other stages.
struct Giving {
  int stage = 0;
  int optimizer = 0;
  models::Section section;
};
std::vector<Giving> given_by(const RunSpec& spec, int stage);
/// Returns the part of its own stage first, then the others by stage.
std::vector<Giving> given_to(const RunSpec& spec, int optimizer);

}  // namespace troupe::actors
