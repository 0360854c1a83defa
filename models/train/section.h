#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/memory/stream.h"
#include "models/parameter.h"
#include "models/staleness.h"
#include "models/train/optimizer.h"
#include "models/train/stage.h"

namespace troupe::models {

/// The part of a stage that one optimizer updates (optimizer sharding, as in ZeRO-1). It receives
/// the gradients of all replicas and publishes the next weights. A piece looks like a whole
/// parameter, so an optimizer knows nothing of sections.
struct Section {
  /// Consecutive elements of a slot. All slots of a tied parameter have the same pieces.
  struct Piece {
    std::size_t slot = 0;
    std::int64_t first = 0;
    std::int64_t count = 0;
  };
  std::vector<Piece> pieces;  // In the order of the slots.
  bool has_buffers = false;
};

/// Cuts a stage's own parameters into `count` consecutive, nearly equal sections. Cuts only between
/// blocks of sums, so that no norm changes, and never a parameter whose rule needs all of it.
/// Sections may be empty. The first one has the buffers.
std::vector<Section> cut_into_sections(const OptimizerConfig& config,
                                       const StalenessOptions& staleness,
                                       const std::vector<Parameter>& parameters,
                                       const std::vector<std::string>& borrowed, int count);

/// Returns the pieces of a section that another stage uses as well, in the slots of that stage.
Section seen_from(const std::vector<Parameter>& user, const Section& section,
                  const std::vector<Parameter>& owner);

/// Returns the section's pieces in the form that an optimizer takes.
std::vector<Parameter> parameters_of(const Section& section,
                                     const std::vector<Parameter>& parameters);

/// Returns the tensor itself, or a piece as a one-dimensional slice. Shares the tensor's memory.
Tensor piece_of(const Tensor& whole, const Section::Piece& piece);

/// Returns a section's part of gradients that have `slots` slots a set. Shares their memory.
GradientShare part_of(const GradientShare& share, const Section& section, std::size_t slots);

/// Returns the version without its frozen parameters, which holders of the stage have already.
Version without_frozen(const Version& version, const std::vector<Parameter>& parameters);

/// Assembles a stage's version from those of its sections. Copies only parameters that are cut.
/// Frozen parameters may be left out.
Version join(Stream& stream, const std::vector<Parameter>& parameters,
             std::span<const Section> sections, std::span<const Version> parts);

}  // namespace troupe::models
