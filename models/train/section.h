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

/// What one optimizer steps of a stage, while others step the rest: the gradients of all who hold
/// the stage come together there, and the next weights go out from there. A piece of a parameter
/// is a parameter in its own right; so an optimizer knows nothing of sections.
struct Section {
  /// Consecutive elements of a slot. The slots of a tied parameter have the same ones.
  struct Piece {
    std::size_t slot = 0;
    std::int64_t first = 0;
    std::int64_t count = 0;
  };
  std::vector<Piece> pieces;  // In the order of the slots.
  bool has_buffers = false;
};

/// Cuts what a stage owns into so many sections, as even as can be, one after another: between
/// blocks of sums, so that no norm changes, and never through a parameter that its rule wants
/// whole. Some are empty where there is too little to cut. The first has the buffers.
std::vector<Section> cut_into_sections(const OptimizerConfig& config,
                                       const StalenessOptions& staleness,
                                       const std::vector<Parameter>& parameters,
                                       const std::vector<std::string>& borrowed, int count);

/// What of a section another stage uses as well, in the slots of that stage.
Section seen_from(const std::vector<Parameter>& user, const Section& section,
                  const std::vector<Parameter>& owner);

/// Its pieces, as an optimizer takes them.
std::vector<Parameter> parameters_of(const Section& section,
                                     const std::vector<Parameter>& parameters);

/// Elements of a tensor, which shares its memory: all of it as it is, or a piece in one dimension.
Tensor piece_of(const Tensor& whole, const Section::Piece& piece);

/// What of the gradients of a stage with so many slots goes to a section; shares their memory.
GradientShare part_of(const GradientShare& share, const Section& section, std::size_t slots);

/// The version of a stage whose sections have made these parts of it. Only what was cut is copied.
Version join(Stream& stream, const std::vector<Parameter>& parameters,
             std::span<const Section> sections, std::span<const Version> parts);

}  // namespace troupe::models
