#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "models/layer.h"

namespace troupe::models {

/// Layers that together form a larger one. Each gets its slice of the whole's weights, buffers and
/// saved tensors, in the order in which it was added. Does not own the layers.
class Parts {
 public:
  void add(const Layer& layer);
  /// Marks the parameters of these names as frozen.
  void freeze(const std::set<std::string>& names);

  int count() const { return static_cast<int>(pieces_.size()); }
  /// The declarations of all parts, concatenated.
  const std::vector<Parameter>& parameters() const { return parameters_; }
  const std::vector<Buffer>& buffers() const { return buffers_; }
  int saved() const { return static_cast<int>(saved_); }
  int cached() const { return static_cast<int>(cached_); }
  /// Returns the greatest reach of a part. Each part takes the output of the part before it.
  Reach reach_from(RowSource& stream, KeptSources& kept) const;
  /// The same for parts whose outputs are joined with each other or with the input.
  Reach reach_of_branches(RowSource stream, KeptSources& kept) const;
  /// One for each parameter: whether it is frozen. Empty: none is.
  std::span<const std::uint8_t> frozen() const { return frozen_; }
  /// Returns whether a part has a parameter that is not frozen.
  bool is_trained(int part) const;
  /// Chains all parts: each takes the output shape of the part before it.
  Shape output(Shape shape) const;
  Work work(Shape shape) const;
  Shape output_with(Shape shape, KeptShapes& kept) const;
  Work work_with(Shape shape, KeptShapes& kept) const;

  /// Calls the layer's own function with its slices of the whole's weights and tensors.
  Tensor forward(int part, const Layer::In& whole, Tensor x, Layer::SavedSpan saved,
                 Layer::SavedSpan statistics) const;
  Tensor backward_input(int part, const Layer::In& whole, Tensor dy, Layer::SavedSpan saved) const;
  /// Allocates and zeroes gradients that are empty, other than matrices. Leaves those of frozen
  /// parameters empty.
  void backward_weight(int part, const Layer::In& whole, Layer::SavedSpan saved,
                       Layer::SavedSpan gradients) const;

  /// Returns the part's own weights and buffers of the whole's.
  Layer::In of_part(int part, const Layer::In& whole) const { return own(piece(part), whole); }
  /// Returns the part's slice of the saved tensors.
  Layer::SavedSpan saved_by(int part, Layer::SavedSpan saved) const;

 private:
  struct Range {
    std::size_t first = 0;
    std::size_t count = 0;
  };
  struct Piece {
    const Layer* layer;
    Range parameters, buffers, saved, caches;
  };
  const Piece& piece(int part) const { return pieces_[static_cast<std::size_t>(part)]; }
  static Layer::In own(const Piece& piece, const Layer::In& whole);

  std::vector<Piece> pieces_;
  std::vector<Parameter> parameters_;
  std::vector<Buffer> buffers_;
  std::vector<std::uint8_t> frozen_;
  std::size_t saved_ = 0;
  std::size_t cached_ = 0;
};

}  // namespace troupe::models
