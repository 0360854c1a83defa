#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/toml/sources.h"
#include "core/value.h"

namespace troupe::config {

/// One thing that is wrong, or odd, in a configuration.
struct Diagnostic {
  enum class Severity { error, warning };

  Severity severity = Severity::error;
  std::string key = {};      // Dotted: "batch.global"; empty for a whole text.
  std::string message = {};  // One sentence without a full stop.
  std::string hint = {};     // What to do; printed behind the carets.
  Position position = {};    // As Sources counts; line 0 where there is none.
  int width = 0;             // How many characters to underline; 0: the whole word there.
};

/// What was found while a configuration was read: gathered, so that a person mends all at once.
class Diagnostics {
 public:
  void add(Diagnostic diagnostic);

  /// Whether there is no error; warnings may be there.
  bool ok() const;
  bool empty() const { return found_.empty(); }
  const std::vector<Diagnostic>& all() const { return found_; }

  /// In the style of a compiler, in the order of the texts:
  ///
  ///     config/gpt.toml:14:1: error: unknown key 'batch.gobal'
  ///        14 | gobal = 64
  ///           | ^~~~~ did you mean 'batch.global'?   (keys here: global, micro)
  std::string render(const Sources& sources) const;

 private:
  std::vector<Diagnostic> found_;
};

}  // namespace troupe::config
