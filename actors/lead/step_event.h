#pragma once

#include <cstdint>
#include <string>

#include "actors/lead/round_under_way.h"
#include "actors/lead/step_ledger.h"
#include "actors/rt.h"
#include "actors/run_spec.h"
#include "core/value.h"
#include "transport/wire/message_types.h"

namespace troupe::actors {

/// Makes an event that has only its type and the name of the run.
Value run_event(const RunSpec& spec, transport::MessageName type);

struct StepReport {
  std::int64_t step = 0;  // Steps done.
  const StepLedger::Entry* entry = nullptr;
  const RoundUnderWay* round = nullptr;  // Null if the step is not the last one of a round.
  rt::Duration took{};
  double goodput = 1;  // Up to here.
};
/// Makes the event of one step.
Value step_event(const RunSpec& spec, const StepReport& report);

}  // namespace troupe::actors
