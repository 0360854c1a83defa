#pragma once

#include <cstdint>
#include <string>

#include "actors/caf_shim.h"
#include "actors/lead/round_under_way.h"
#include "actors/lead/step_ledger.h"
#include "actors/run_spec.h"
#include "core/value.h"
#include "transport/wire/message_types.h"

namespace troupe::actors {

/// Makes an event that has only its type and the name of the run.
Value run_event(const RunSpec& spec, transport::MessageName type);

struct StepReport {
  std::int64_t step = 0;  // Steps done.
  const StepLedger::Entry* entry = nullptr;
  const RoundUnderWay* round = nullptr;  // Null unless the step is the last one of a round.
  caf_shim::Duration took{};
  double goodput = 1;      // Up to this step.
  Value::List waits = {};  // How long nodes waited for each other.
};
/// Returns the event that is recorded for every step.
Value step_event(const RunSpec& spec, const StepReport& report);

}  // namespace troupe::actors
