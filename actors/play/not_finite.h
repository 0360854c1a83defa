#pragma once

#include <string>

#include "actors/messages.h"
#include "actors/run_spec.h"

namespace troupe::actors {

// Why a run has failed whose numbers are none any more, for a person: which of them, and where.

std::string loss_not_finite(const RunSpec& spec, const MicroBatchLoss& loss);
std::string gradient_not_finite(const RunSpec& spec, const Divergence& divergence);

}  // namespace troupe::actors
