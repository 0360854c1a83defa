#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "models/registry.h"

namespace troupe::config {

/// A name that `pipeline.schedule` may have.
struct ScheduleName {
  enum class Updates { synchronous, asynchronous };

  std::string_view name;
  Updates updates = Updates::synchronous;
  std::string_view help;
};

/// What other folders add to the schema: the kinds of models with their keys, and the schedules.
struct Catalog {
  std::span<const models::ModelKind> model_kinds;
  std::vector<ScheduleName> schedules;
};

/// All that this program knows.
const Catalog& built_in_catalog();

}  // namespace troupe::config
