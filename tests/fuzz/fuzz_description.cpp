#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <variant>

#include "config/toml/toml.h"
#include "core/json.h"
#include "models/description/model_kind.h"

using namespace troupe;

/// Reads any text as the description of a model: gives an error, or a kind whose model, if its
/// options allow one, has layers that take its input.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto tree = text.starts_with("{") ? parse_json(text) : config::parse_toml(text);
  if (!tree) return 0;
  const auto read = models::ModelKind::read(*tree);
  if (const auto* fault = std::get_if<models::Fault>(&read)) {
    if (models::error_of(*fault).text.empty()) std::abort();
    return 0;
  }
  const auto& kind = std::get<models::ModelKind>(read);
  const auto options = models::complete(kind.options(), Value(Value::Map{}));
  if (!options) return 0;
  const auto model = kind.build(*options);
  if (!model) {
    if (model.error().text.empty()) std::abort();
    return 0;
  }
  // Sizes of 0 take any: images of 64 pixels are large enough for most.
  Shape shape{2};
  for (const auto side : model->sample.input) shape.append(side == 0 ? 64 : side);
  shape = bundles_of(*model, shape).back()[0].shape;
  if (shape.last() != model->classes) std::abort();
  return 0;
}
