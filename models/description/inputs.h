#pragma once

#include <cstdint>

#include "models/description/description.h"
#include "models/description/evaluation.h"
#include "models/description/flow.h"

namespace troupe::models {

/// Whether an input is the first one, with which the stream begins.
enum class InputPlace : std::uint8_t { first, behind };

/// Returns the flow of an input. `at` gets a fault if the input makes no sense.
Flow flow_of_input(const Description::Input& input, InputPlace where, Evaluation& at);

}  // namespace troupe::models
