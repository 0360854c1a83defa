#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/memory/stream.h"
#include "models/train/gradient_fold.h"
#include "models/train/section.h"
#include "models/train/stage.h"

namespace troupe::models {

/// The gradients of a stage as one tensor, so that a device can add them to those of all others who
/// hold the stage at one go.
struct PackedGradients {
  Tensor numbers;                   // Section after section.
  std::vector<std::int64_t> sizes;  // By section.
};

/// The sum of all that a share has. Gradients of late micro-batches do not go in.
PackedGradients pack(Stream& stream, const GradientShare& share,
                     const std::vector<Parameter>& parameters, std::span<const Section> sections);

/// A section's part of what was packed and has been added up: the sum of a step's `groups`, as its
/// optimizer takes it. Shares their memory.
PartialSum unpack(const PackedGradients& packed, std::size_t number,
                  const std::vector<Parameter>& parameters, const Section& section, int groups);

}  // namespace troupe::models
