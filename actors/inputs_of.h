#pragma once

#include <utility>

#include "models/kept_values.h"
#include "storage/data/micro_batches.h"

namespace troupe::actors {

/// Returns what the first stage receives of a micro-batch: its inputs, in the model's order.
inline models::Bundle inputs_of(storage::Batch batch) {
  models::Bundle bundle = std::move(batch.input);
  bundle.kept = std::move(batch.more);
  return bundle;
}

}  // namespace troupe::actors
