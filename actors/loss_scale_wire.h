#pragma once

#include <cstdint>
#include <tuple>

#include "models/loss_scale.h"
#include "transport/wire/fields.h"

namespace troupe::actors {

/// A loss scale in the form of messages and checkpoint manifests.
struct LossScaleWire {
  int power = 0;
  std::int64_t steady_steps = 0;
  std::int64_t skipped_steps = 0;

  static LossScaleWire of(const models::LossScale& scale) {
    return {scale.power, scale.steady_steps, scale.skipped_steps};
  }
  models::LossScale scale() const { return {power, steady_steps, skipped_steps}; }

  static constexpr auto fields() {
    using transport::required;
    return std::tuple(required("power", &LossScaleWire::power)
                          .at_least(0)
                          .at_most(models::LossScaling::most_power),
                      required("steady_steps", &LossScaleWire::steady_steps).at_least(0),
                      required("skipped_steps", &LossScaleWire::skipped_steps).at_least(0));
  }
};

}  // namespace troupe::actors
