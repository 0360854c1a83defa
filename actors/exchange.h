#pragma once

#include <vector>

#include "actors/round.h"
#include "actors/run_spec.h"
#include "models/train/section.h"
#include "schedules/exchange.h"

/// How the gradients of all who hold a stage become the next weights of all of them
/// (docs/explanation/exchange.md). A stage is cut into sections, and each section has an optimizer:
/// every holder sends it that part of its gradients, and it sends that part of the next weights to
/// every holder. With a section for each holder this is an exchange of all with all, and each keeps
/// the moments of its section alone; with one section it is a server.
namespace troupe::actors {

using schedules::Exchange;

/// Cuts the stages of a run that has everything else already.
void cut_stages(RunSpec& spec, Exchange exchange);

/// Which optimizer it is. A cast has them by stage, then section; every stage has as many.
struct OptimizerPlace {
  int stage = 0;
  int section = 0;
};
int optimizers_of(const RunSpec& spec);
OptimizerPlace place_of(const RunSpec& spec, int optimizer);
int optimizer_of(const RunSpec& spec, OptimizerPlace place);

/// The holder on whose device it computes.
Holder home_of(const RunSpec& spec, int optimizer);

/// What of a stage's gradients goes to an optimizer, in the slots of that stage: of its own stage
/// the section, of others what they borrow of it.
struct Giving {
  int stage = 0;
  int optimizer = 0;
  models::Section section;
};
std::vector<Giving> given_by(const RunSpec& spec, int stage);
/// That of its own stage comes first, then by stage.
std::vector<Giving> given_to(const RunSpec& spec, int optimizer);

}  // namespace troupe::actors
