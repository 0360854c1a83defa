#include "models/model.h"

#include <algorithm>

namespace troupe::models {

bool SampleForm::takes(const Shape& given) const {
  if (given.rank() != input.rank()) return false;
  if (input_type == DType::i32 && more.empty()) return given[0] >= 1 && given[0] <= input[0];
  for (int i = 0; i < input.rank(); ++i)
    if (input[i] != 0 && given[i] != input[i]) return false;
  return true;
}

bool Model::continues_from(int unit, const std::vector<std::size_t>& text) const {
  if (text.empty() && !sample.more.empty()) return false;
  RowSource stream = text.empty() ? RowSource::text : RowSource::fixed;
  KeptSources sources(kept.size(), RowSource::fixed);
  for (const auto input : text) sources[input] = RowSource::text;
  Reach most = Reach::own_row;
  for (int i = 0; i < static_cast<int>(units.size()); ++i) {
    const Reach reach = units[static_cast<std::size_t>(i)].layer->reach_from(stream, sources);
    if (i >= unit) most = std::max(most, reach);
  }
  return most < Reach::all_rows && stream == RowSource::text;
}

bool Model::trains_before(int unit) const {
  for (int i = 0; i < unit; ++i)
    for (const auto& parameter : units[static_cast<std::size_t>(i)].layer->parameters())
      if (!frozen.contains(parameter.name)) return true;
  return frozen.empty() && unit > 0;
}

}  // namespace troupe::models
