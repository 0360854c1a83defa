#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/memory/stream.h"
#include "models/train/gradient_fold.h"
#include "models/train/section.h"
#include "models/train/stage.h"

namespace troupe::models {

/// The gradients of a stage as one tensor, so that a device can all-reduce them over the replicas
/// of the stage in one call.
struct PackedGradients {
  Tensor numbers;                   // One section after another.
  std::vector<std::int64_t> sizes;  // Numbers of each section.
};

/// Packs the sum of all gradients of a share. Late gradients cannot be packed.
PackedGradients pack(Stream& stream, const GradientShare& share,
                     const std::vector<Parameter>& parameters, std::span<const Section> sections);

/// Returns a section's part of a packed and all-reduced tensor: the sum of a step's `groups`, as
/// its optimizer takes it. Shares the packed memory.
PartialSum unpack(const PackedGradients& packed, std::size_t number,
                  const std::vector<Parameter>& parameters, const Section& section, int groups);

}  // namespace troupe::models
