#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "core/value.h"
#include "models/description/model_kind.h"

namespace troupe::config {

/// Converts a `config.json` of transformers, of timm, or of hugging_face_of(), to a table of our
/// model options, as the `huggingface` entries of `kinds` say. Refuses a key or a value that says
/// that the model computes something else than ours, unless `accepted` has the key
/// ("rope_parameters.factor" is a key in a table).
Result<Value> model_of_hugging_face(std::span<const models::ModelKind> kinds, const Value& config,
                                    const std::vector<std::string>& accepted = {});

/// Converts a table of our model options to a `config.json` that `model_of_hugging_face` reads
/// back. If a model type of transformers or a network of timm computes the same, it also has the
/// keys of that.
Value hugging_face_of(std::span<const models::ModelKind> kinds, const Value& model);

/// As above, with the keys of the `config.json` that the model came with: token ids and whatever
/// else it says stay, and options that changed since are written. Returns nothing if that file
/// describes models of another type.
std::optional<Value> hugging_face_like(std::span<const models::ModelKind> kinds, const Value& model,
                                       const Value& came);

/// Writes a config.json. A number that is not an integer keeps its point ("12.0"), because
/// transformers takes no integers in place of floats.
std::string config_json_text(const Value& config);

}  // namespace troupe::config
