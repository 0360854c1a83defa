#pragma once

#include <vector>

#include "models/train/unit_costs.h"

namespace troupe::apps {

/// The seconds of a unit's passes of one micro-batch, and of its optimizer's step.
struct UnitTimes {
  double forward = 0;
  double backward = 0;  // In one pass.
  double backward_input = 0;
  double backward_weight = 0;
  double update = 0;
};

/// A model whose units are measured.
struct MeasuredModel {
  const models::Model& model;
  const models::CostRequest& request;
  const std::vector<models::UnitCosts>& costs;
  double expected = 0;  // Seconds of a micro-batch on a device, as kernels' rates foretell them.
};

}  // namespace troupe::apps
