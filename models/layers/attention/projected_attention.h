#pragma once

#include <optional>
#include <vector>

#include "models/layer.h"
#include "models/layers/attention/attention_core.h"
#include "models/layers/lora.h"
#include "models/layers/projection.h"

namespace troupe::models {

/// Attention with separate projections to queries, keys and values, and possibly fewer heads of
/// keys and values than of queries. Keys and values are those of the stream, or of a kept value
/// (cross attention). It does not include the output projection.
class ProjectedAttention final : public Layer {
 public:
  /// The matrices, and their biases if `biases` is not empty.
  struct Projections {
    Parameter query, key, value;
    std::vector<Parameter> biases{};  // For query, key and value.
  };
  /// `memory` is the kept value that keys and values are made of, if not of the stream.
  ProjectedAttention(AttentionCore core, Projections projections,
                     std::optional<KeptInput> memory = {});

  /// The matrices, the biases, and the core's parameters.
  std::vector<Parameter> parameters() const override;
  int saved() const override { return own_saved() + core_.saved(); }
  Reach reach() const override { return memory_ ? Reach::all_rows : core_.reach(); }
  Reach reach_from(RowSource& stream, KeptSources& kept) const override;
  int cached() const override { return core_.cached(); }
  Shape output(const Shape& input) const override { return query_.output(input); }
  Work work(const Shape& input) const override { return work_of(input, input); }
  Work work_with(const Shape& input, KeptShapes& kept) const override {
    return work_of(input, memory_ ? kept[static_cast<std::size_t>(memory_->number)] : input);
  }
  Tensor forward(const In& in, Tensor x, SavedSpan saved, SavedSpan statistics) const override;
  Tensor backward_input(const In& in, Tensor dy, SavedSpan saved) const override;
  void backward_weight(const In& in, SavedSpan saved, SavedSpan gradients) const override;

 private:
  // backward_input leaves the operands of gradients where the core had queries, keys and values.
  // With biases the gradients themselves follow the input, and last comes the memory.
  static constexpr std::size_t input = 0;
  static constexpr std::size_t projections = 3;

  bool has_biases() const { return !biases_.empty(); }
  int own_saved() const { return (has_biases() ? 4 : 1) + (memory_ ? 1 : 0); }
  std::size_t memory_slot() const { return static_cast<std::size_t>(own_saved()) - 1; }
  bool reads_memory(std::size_t projection) const { return memory_ && projection > 0; }
  Work work_of(const Shape& input, const Shape& memory) const;
  /// Returns queries, keys or values.
  Tensor projected(const In& in, std::size_t projection, const Tensor& from) const;
  Tensor continue_with_memory(const In& in, const Tensor& operand) const;
  SavedSpan of_core(SavedSpan saved) const {
    return saved.subspan(static_cast<std::size_t>(own_saved()));
  }
  std::size_t first_of_core() const { return projections + biases_.size(); }
  const Projection& projection(std::size_t i) const {
    return i == 0 ? query_ : i == 1 ? key_ : value_;
  }

  AttentionCore core_;
  std::optional<KeptInput> memory_;
  Projection query_, key_, value_;
  std::vector<Parameter> biases_;
  Additions additions_;  // Behind all other parameters.
};

}  // namespace troupe::models
