#pragma once

#include <string>

#include "actors/messages.h"
#include "actors/run_spec.h"

namespace troupe::actors {

// Return the error of a run with a value that is not finite: which value, and where.

std::string loss_not_finite(const RunSpec& spec, const MicroBatchLoss& loss);
std::string gradient_not_finite(const RunSpec& spec, const Divergence& divergence);

}  // namespace troupe::actors
