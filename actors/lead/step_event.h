#pragma once

#include <cstdint>
#include <string>

#include "actors/caf_shim.h"
#include "actors/lead/round_under_way.h"
#include "actors/lead/step_ledger.h"
#include "actors/run_spec.h"
#include "core/value.h"

namespace troupe::actors {

/// Returns an event with only its type and the run's name.
Value run_event(const RunSpec& spec, const std::string& type);

struct StepReport {
  std::int64_t step = 0;  // Steps done.
  const StepLedger::Entry* entry = nullptr;
  const RoundUnderWay* round = nullptr;  // Null unless the step is the last one of a round.
  caf_shim::Duration took{};
  double goodput = 1;  // Up to this step.
};
/// Returns the event that is recorded for every step.
Value step_event(const RunSpec& spec, const StepReport& report);

}  // namespace troupe::actors
