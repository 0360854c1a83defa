#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"
#include "models/model.h"
#include "models/train/optimizer.h"
#include "models/work.h"

namespace troupe::models {

/// In bytes, as blocks of a memory pool: what is asked for, rounded up to the pool's sizes.
struct ParameterBytes {
  std::int64_t weight = 0;     // One version: values, packed matrices, buffers.
  std::int64_t gradient = 0;   // One sum; each use of a tied parameter has its own.
  std::int64_t optimizer = 0;  // Moments.
};

/// What a plan must know of a unit. The loss counts with the last one.
struct UnitCosts {
  std::string name;

  Work work;                         // Of a micro-batch.
  double update_bytes = 0;           // Bytes that the optimizer reads and writes in a step.
  double orthogonal_operations = 0;  // Operations of the optimizer, where its products count.

  /// What an earlier unit holds too is left out here and stands in `tied`: it is added where the
  /// earlier unit is elsewhere. (Its gradient is not: each use makes one.)
  std::int64_t parameters = 0;
  ParameterBytes held;
  std::string tied_name;  // Of a parameter that another unit has too; or empty.
  ParameterBytes tied;
  std::int64_t uncut_moments = 0;  // The most that must stay together where moments are cut.
  /// While the next version is made: at most so much beyond weights, gradients and moments.
  std::int64_t update_room = 0;

  std::int64_t stash = 0;         // What a forward pass keeps of a micro-batch,
  std::int64_t stash_shared = 0;  // what of it counts only where a stage begins here,
  std::int64_t stash_input = 0;   // what is kept of the input alone,
  std::int64_t stash_weight = 0;  // and what is kept between the halves of the backward pass.
  std::int64_t statistics = 0;    // What is left of a micro-batch until the step ends.
  std::int64_t workspace = 0;     // At most so much beyond `stash`, while a pass runs.
  std::int64_t boundary = 0;      // What comes in.
};

/// Who computes: a GPU holds other forms of weights, and takes memory for its kernels.
enum class Computer : std::uint8_t { cores, gpu };

/// Under which circumstances.
struct CostRequest {
  std::int64_t micro = 1;  // Samples in a micro-batch.
  Shape input;  // Of a sample, as the data has it: perhaps shorter than the model's context.
  Shape target;
  kernels::Precision precision = kernels::Precision::fp32;
  OptimizerConfig optimizer = {};
  StalenessOptions staleness = {};  // Of an asynchronous schedule.
  Computer computer = Computer::cores;
};

/// By unit. The bytes are not computed but found: the unit's own functions run once with a stream
/// that leaves out the work, on memory that exists as addresses alone, and the pool tells what they
/// hold. So they are those of a training run, except for scratch that kernels take and give back
/// within a loop: less than a MiB for each thread.
Result<std::vector<UnitCosts>> unit_costs(const Model& model, const CostRequest& request);

}  // namespace troupe::models
