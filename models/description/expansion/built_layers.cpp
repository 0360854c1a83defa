#include "models/description/expansion/built_layers.h"

#include <utility>

#include "models/layers/residual.h"
#include "models/layers/residual_stream.h"
#include "models/layers/sequence.h"

namespace troupe::models {
namespace {

LayerPtr layer_of(BuiltLayer built) {
  if (!built.branches.empty())
    return std::make_unique<const ResidualStream>(std::move(built.branches));
  if (built.norm) return std::move(built.norm);
  return std::move(built.layer);
}

}  // namespace

LayerPtr sequence_of(Layers layers) {
  if (layers.size() == 1) return layer_of(std::move(layers.front()));
  std::vector<LayerPtr> all;
  for (auto& layer : layers) all.push_back(layer_of(std::move(layer)));
  return std::make_unique<const Sequence>(std::move(all));
}

BuiltLayer plain(LayerPtr layer) { return {.layer = std::move(layer), .norm = {}, .branches = {}}; }

void add_residual(Layers inner, Layers shortcut, Layers& into) {
  if (inner.size() < 2 || !inner.front().norm || !shortcut.empty()) {
    LayerPtr added = shortcut.empty() ? nullptr : sequence_of(std::move(shortcut));
    into.push_back(
        plain(std::make_unique<const Residual>(sequence_of(std::move(inner)), std::move(added))));
    return;
  }
  ResidualStream::Branch branch{.norm = std::move(inner.front().norm), .inner = nullptr};
  inner.erase(inner.begin());
  branch.inner = sequence_of(std::move(inner));
  if (into.empty() || into.back().branches.empty()) into.emplace_back();
  into.back().branches.push_back(std::move(branch));
}

}  // namespace troupe::models
