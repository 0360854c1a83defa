#pragma once

#include <span>

#include "config/toml/document.h"
#include "models/description/model_kind.h"

namespace troupe::config {

/// Reads the model that `model.from` names: a folder as Hugging Face saves models. The keys of
/// [model] that the document does not state come from its config.json, and model.init becomes the
/// folder unless it is stated. Removes `from` and `accept`.
void read_model_folder(const ReadText& read, std::span<const models::ModelKind> kinds,
                       Document& document, Diagnostics& found);
/// Refuses `model.from` and `model.accept` in a message, whose sender alone has the folder.
void refuse_model_folder(const Document& document, Diagnostics& found);

}  // namespace troupe::config
