#pragma once

#include <cstdint>

namespace troupe::actors {

/// The reaction of a run to a spike: a loss or a gradient norm far above those of the steps before,
/// or a loss or gradient that is not finite.
struct SpikeRule {
  enum class Action : std::uint8_t {
    none,  // Only a number that is not finite ends the run.
    stop,  // A spike ends the run.
    skip,  // The run goes back and leaves out the samples of the step.
  };

  Action action = Action::none;
  double factor = 2;         // A spike is more than this many times the median loss
  std::int64_t window = 50;  // of as many steps before it.
  std::int64_t most = 3;     // Steps that may be left out in so many steps.
  double norm_factor = 0;    // The same as `factor` for gradient norms. 0: they may be anything.
};

}  // namespace troupe::actors
