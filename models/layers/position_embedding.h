#pragma once

#include <cstdint>
#include <optional>

#include "models/layer.h"

namespace troupe::models {

/// A table whose row p is added to position p of each sample [length, width]. A sample may be
/// shorter than the table. Or one row of the table is added to all positions, or a kept value says
/// which one is added to each.
class PositionEmbedding final : public Layer {
 public:
  struct Rows {
    std::optional<std::int64_t> all;  // The row that all positions get.
    std::optional<int> kept;          // The number of the kept value that has a row for each.
  };
  /// The last two dimensions of the table are [positions, width].
  explicit PositionEmbedding(Parameter table, const Rows& rows = {});

  std::vector<Parameter> parameters() const override { return {table_}; }
  int saved() const override { return rows_.kept ? 2 : 1; }
  Reach reach() const override { return Reach::own_row; }
  Reach reach_from(RowSource& stream, KeptSources& kept) const override;
  Tensor forward(const In& in, Tensor x, SavedSpan saved, SavedSpan statistics) const override;
  Tensor backward_input(const In& in, Tensor dy, SavedSpan saved) const override;
  void backward_weight(const In& in, SavedSpan saved, SavedSpan gradients) const override;

 private:
  enum Saved { gradient, rows_of_kept };

  Parameter table_;
  Rows rows_;
};

}  // namespace troupe::models
