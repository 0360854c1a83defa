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

/// An event of a run, with nothing in it but its type and the run's name.
Value run_event(const RunSpec& spec, transport::MessageName type);

struct StepReport {
  std::int64_t step = 0;  // Steps done.
  const StepLedger::Entry* entry = nullptr;
  const RoundUnderWay* round = nullptr;  // Null where the step is not the last one of a round.
  rt::Duration took{};
  double goodput = 1;  // Up to here.
};
/// What is told of every step.
Value step_event(const RunSpec& spec, const StepReport& report);

}  // namespace troupe::actors
