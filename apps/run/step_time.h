#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/gpu/card.h"
#include "apps/run/run_setup.h"
#include "config/run_config.h"
#include "core/result.h"
#include "core/value.h"
#include "models/train/step_calls.h"
#include "schedules/simulate/cost_model.h"

namespace troupe::apps {

/// A stage of the run, and what its GPU does in a step.
struct StageCalls {
  std::string units;  // "h.0 .. h.5"
  models::StepCalls calls;
};

/// A model of a step's time: each kernel takes as long as the GPU's peaks allow. It leaves out
/// everything between kernels: launches, transfers between stages, pipeline bubbles.
struct StepTime {
  Card card;
  kernels::Precision precision = kernels::Precision::fp32;
  std::int64_t micro = 1;  // Samples in a micro-batch.
  std::int64_t micro_batches = 1;
  std::int64_t tokens = 0;  // In a sample; 0 if samples have no tokens.
  int devices = 1;
  schedules::Bytes memory = 0;  // The bytes of the fullest device.
  std::vector<StageCalls> stages;
};

/// Models the step of a synchronous run with one replica. Needs no GPU. The configuration names
/// GPUs as the devices (is_on_gpus()).
Result<StepTime> step_time(const config::RunConfig& config, const RunSetup& setup,
                           const Card& card);

/// Whether to list the kernels or their sums alone.
enum class Detail : std::uint8_t { sums, kernels };
std::string to_table(const StepTime& time, Detail detail);
Value to_value(const StepTime& time, Detail detail);

}  // namespace troupe::apps
