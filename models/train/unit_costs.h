#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"
#include "models/model.h"
#include "models/train/account.h"
#include "models/train/optimizer.h"
#include "models/work.h"

namespace troupe::models {

/// Bytes of memory pool blocks, which are rounded up to the pool's sizes.
struct ParameterBytes {
  std::int64_t weight = 0;     // One version: values, packed matrices, buffers.
  std::int64_t gradient = 0;   // One sum. Each use of a tied parameter has its own.
  std::int64_t optimizer = 0;  // Moments.
};

/// The costs of a unit, as a planner needs them. The last unit includes the loss.
struct UnitCosts {
  std::string name;

  Work work;                         // For one micro-batch.
  double update_bytes = 0;           // Bytes that the optimizer moves per step.
  double orthogonal_operations = 0;  // Operations of Muon's products.

  /// Parameters that an earlier unit has, too, count in `ties` instead: a planner adds them if the
  /// earlier unit is on another stage. Gradients always count here: each use makes one.
  std::int64_t parameters = 0;
  ParameterBytes held;
  /// A parameter shared with other units. The first of them has no bytes here.
  struct Tie {
    std::string name;
    ParameterBytes bytes{};
  };
  std::vector<Tie> ties;
  std::int64_t uncut_moments = 0;  // Most bytes of moments that sharding cannot cut.
  /// The most memory, beyond weights, gradients and moments, while the next version is made.
  std::int64_t update_room = 0;

  std::int64_t stash = 0;         // Activations that a forward pass keeps.
  std::int64_t stash_shared = 0;  // The part of stash that counts only if a stage begins here.
  std::int64_t stash_input = 0;   // The input alone, as Keep::input keeps it: the whole bundle.
  std::int64_t stash_weight = 0;  // Tensors kept between the halves of the backward pass.
  std::int64_t stash_weight_shared = 0;  // More of them if a stage begins here.
  std::int64_t statistics = 0;           // Statistics that stay until the step ends.
  std::int64_t workspace = 0;            // The most beyond `stash` while a pass runs.
  std::int64_t boundary = 0;  // The input: the stream and the kept values that cross a cut here.
  std::int64_t boundary_kept = 0;  // The kept values of it.
  std::int64_t boundary_back = 0;  // The gradients that a stage sends back if it begins here.
};

/// The conditions under which to find the costs.
struct CostRequest {
  std::int64_t micro = 1;  // Samples in a micro-batch.
  Shape input;             // The shape of a sample. It may be shorter than the model's context.
  Shape target;
  kernels::Precision precision = kernels::Precision::fp32;
  OptimizerConfig optimizer = {};
  StalenessOptions staleness = {};  // For an asynchronous schedule.
  Computer computer = Computer::cores;
};

/// Returns the costs of each unit. Measures bytes instead of modelling them: it runs each unit once
/// on a stream that skips the work, with memory that exists only as addresses, and reads the pool's
/// counters. So they match a training run, except for scratch memory that kernels take and free
/// within a loop: less than one MiB for each thread.
///
/// A kept value that layers save for their backward passes counts once in a stage: as the stash of
/// the first unit that saves it, and as `stash_shared` of units behind that one. Where a stage
/// begins between two such units without having one, this is too much. What stays of them between
/// the halves of the backward pass counts likewise, in `stash_weight` and `stash_weight_shared`.
/// All other kept values count as workspace, because a pass only hands them on.
Result<std::vector<UnitCosts>> unit_costs(const Model& model, const CostRequest& request);

}  // namespace troupe::models
