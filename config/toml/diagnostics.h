#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/toml/sources.h"
#include "core/value.h"

namespace troupe::config {

/// An error or a warning about a configuration.
struct Diagnostic {
  enum class Severity { error, warning };

  Severity severity = Severity::error;
  std::string key = {};      // Dotted: "batch.global"; empty for a whole text.
  std::string message = {};  // One sentence without a full stop.
  std::string hint = {};     // The advice printed after the carets.
  Position position = {};    // In the numbering of Sources; line 0 if there is none.
  int width = 0;             // Characters to underline; 0: the whole word.
};

/// All diagnostics of a configuration, so that a user can fix everything at once.
class Diagnostics {
 public:
  void add(Diagnostic diagnostic);

  /// Returns whether there is no error. Warnings do not count.
  bool ok() const;
  bool empty() const { return found_.empty(); }
  const std::vector<Diagnostic>& all() const { return found_; }

  /// Prints diagnostics like a compiler, in the order of the texts:
  ///
  ///     config/gpt.toml:14:1: error: unknown key 'batch.gobal'
  ///        14 | gobal = 64
  ///           | ^~~~~ did you mean 'batch.global'?   (keys here: global, micro)
  std::string render(const Sources& sources) const;

 private:
  std::vector<Diagnostic> found_;
};

}  // namespace troupe::config
