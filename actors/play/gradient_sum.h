#pragma once

#include <functional>
#include <memory>

#include "actors/run_spec.h"
#include "core/memory/stream.h"
#include "models/train/gradient_fold.h"
#include "models/train/stage.h"

namespace troupe::transport {
class Adder;
}  // namespace troupe::transport

namespace troupe::actors {

/// Whether the gradients of a run's replicas may be added up in any order, by whatever carries them
/// (docs/explanation/exchange.md). Late ones are not: each is mended by itself.
bool may_add_up_anyhow(const RunSpec& spec);

/// Which of those who hold a stage one is.
struct HolderPlace {
  int stage = 0;
  int holder = 0;
};

/// By a job of a holder, which gives its gradients away: they are added to those of all others who
/// hold the stage. `take` hears, on any thread, the sum of the section whose optimizer is at home
/// where this holder is; where there is none it may be empty.
void add_up(Stream& stream, const std::shared_ptr<transport::Adder>& adder, const RunSpecPtr& spec,
            HolderPlace place, const models::GradientShare& gradients,
            std::function<void(models::PartialSum)> take);

}  // namespace troupe::actors
