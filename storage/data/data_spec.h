#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace troupe::storage {

/// A parsed data spec of the configuration: "made:markov?states=64&seed=1", or a path with options.
/// The caller asks for each option it knows; finish() then reports what was wrong.
class DataSpec {
 public:
  enum class Kind { made, path };

  static Result<DataSpec> parse(const std::string& text);

  Kind kind() const { return kind_; }
  /// Returns the part before the options: "markov", or the path.
  const std::string& name() const { return name_; }

  /// Returns the option's value, or `fallback` if it is missing or invalid.
  std::int64_t integer(std::string_view key, std::int64_t fallback, std::int64_t least,
                       std::int64_t most);
  double number(std::string_view key, double fallback, double least, double most);
  std::optional<std::string> text(std::string_view key);

  /// Returns an error for the first option that is invalid or that nobody asked for.
  Status finish() const;

 private:
  struct Option {
    std::string key, value;
    enum class Use { unknown, known } use = Use::unknown;
  };
  const Option* ask(std::string_view key);

  Kind kind_ = Kind::path;
  std::string text_, name_;
  std::vector<Option> options_;
  std::vector<std::string> asked_;
  std::optional<Error> error_;
};

}  // namespace troupe::storage
