#pragma once

#include <cstdint>
#include <vector>

#include "core/result.h"
#include "kernels/rehearsed/kernel_call.h"
#include "models/model.h"
#include "models/train/stage.h"
#include "models/train/unit_costs.h"

namespace troupe::models {

/// Equal calls of a device's kernel.
struct KernelCalls {
  kernels::KernelCall call;
  std::int64_t times = 0;
};

/// The kernels that a stage and its optimizer call on a GPU in one step, in the order of their
/// first calls. Copies between the GPU and the host or other devices are not listed.
struct StepCalls {
  std::vector<KernelCalls> forward;   // For all micro-batches.
  std::vector<KernelCalls> backward;  // Also recomputation and sums of gradients over groups.
  std::vector<KernelCalls> end;       // The norm of the gradients and the optimizer's step.

  /// Returns the operations in products of the forward passes.
  double forward_operations() const;
};

/// A stage of a synchronous run with one replica.
struct StepRequest {
  UnitRange units;
  Keep keep = Keep::everything;
  int micro_batches = 1;  // In a step.
  int groups = 1;         // Reduction groups of a step.
};

/// Returns the calls of a step that is not the first. Rehearses the step on a device that computes
/// nothing, so that the list contains what a training run calls. `costs.computer` must be a GPU.
Result<StepCalls> step_calls(const Model& model, const StepRequest& step, const CostRequest& costs);

}  // namespace troupe::models
