#include "models/kept_values.h"

#include "models/model.h"

namespace troupe::models {

std::vector<int> kept_across(const Model& model, int unit) {
  std::vector<int> numbers;
  for (std::size_t i = 0; i < model.kept.size(); ++i)
    if (model.kept[i].made < unit && unit <= model.kept[i].last)
      numbers.push_back(static_cast<int>(i));
  return numbers;
}

std::vector<int> gradients_across(const Model& model, int unit) {
  auto numbers = kept_across(model, unit);
  std::erase_if(numbers, [&](int number) {
    return !model.kept[static_cast<std::size_t>(number)].has_gradient;
  });
  return numbers;
}

std::vector<std::vector<BundlePart>> bundles_of(const Model& model, const Shape& input) {
  std::vector<std::vector<BundlePart>> bundles;
  KeptShapes shapes(model.kept.size());
  for (std::size_t i = 0; i < model.sample.more.size(); ++i) {
    shapes[i].append(input[0]);
    for (const auto size : model.sample.more[i].shape) shapes[i].append(size);
  }
  Shape stream = input;
  for (int unit = 0;; ++unit) {
    auto& parts = bundles.emplace_back();
    const bool is_input = unit == 0;
    parts.push_back({.name = {},
                     .shape = stream,
                     .type = is_input ? model.sample.input_type : DType::f32,
                     .has_gradient = !is_input,
                     .bounds = is_input ? model.sample.bounds : IntegerBounds()});
    for (const int number : kept_across(model, unit)) {
      const auto& kept = model.kept[static_cast<std::size_t>(number)];
      parts.push_back({kept.name, shapes[static_cast<std::size_t>(number)], kept.type,
                       kept.has_gradient, kept.bounds});
    }
    if (unit == static_cast<int>(model.units.size())) return bundles;
    stream = model.units[static_cast<std::size_t>(unit)].layer->output_with(stream, shapes);
  }
}

}  // namespace troupe::models
