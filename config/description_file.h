#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/toml/document.h"
#include "core/result.h"
#include "core/value.h"
#include "models/description/model_kind.h"
#include "models/model.h"

namespace troupe::config {

/// A kind of models from a file, or one that the program comes with. Its errors are rendered like
/// those of a configuration: with file, line and the text of the line.
class DescriptionFile {
 public:
  /// `name` is the path of a .toml file, or the name of a kind or of a preset.
  static Result<DescriptionFile> open(const std::string& name,
                                      const ReadText& read = read_text_file);

  const models::ModelKind& kind() const { return *kind_; }

  /// Returns the options that settings such as "width=8" and the defaults do not give.
  Result<std::vector<std::string>> missing(const std::vector<std::string>& settings) const;
  /// Builds the model with these settings, which leave nothing missing.
  Result<models::Model> build(const std::vector<std::string>& settings) const;

 private:
  Result<Value> given(const std::vector<std::string>& settings) const;

  std::optional<models::ModelKind> kind_;
  Value preset_ = Value::Map{};  // The options that the name gives.
  Sources sources_;
};

}  // namespace troupe::config
