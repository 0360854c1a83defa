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

/// Returns whether a run's gradients may be summed in any order by links
/// (docs/explanation/exchange.md). Stale gradients may not: each is corrected separately.
bool may_add_up_anyhow(const RunSpec& spec);

/// A holder of a stage.
struct HolderPlace {
  int stage = 0;
  int holder = 0;
};

/// Called by a holder's job: sums its gradients with those of all other holders. `take` receives,
/// on any thread, the sum of the section whose optimizer is on this holder's device. It may be
/// empty if there is no such section.
void add_up(Stream& stream, const std::shared_ptr<transport::Adder>& adder, const RunSpecPtr& spec,
            HolderPlace place, const models::GradientShare& gradients,
            std::function<void(models::PartialSum)> take);

}  // namespace troupe::actors
