#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/toml/diagnostics.h"
#include "config/toml/sources.h"
#include "core/result.h"
#include "core/value.h"

namespace troupe::apps {

/// A word of a line and its position.
struct Word {
  std::string_view text;
  Position position;
};

/// Splits a text into lines and words, skips comments that begin with '#', and collects errors. The
/// text outlives it.
class LineReader {
 public:
  LineReader(std::string_view text, const std::string& name);

  /// Returns the words of the next line that has any. Blanks separate words.
  std::optional<std::vector<Word>> next();

  /// Reports an error at a word. A word without a position means the whole text.
  void fail(const Word& word, const std::string& what, const std::string& hint);
  bool ok() const { return found_.ok(); }
  /// Returns the errors in the style of compilers. Requires !ok().
  Error errors() const { return {found_.render(sources_)}; }

 private:
  std::string_view rest_;
  int line_ = 0;
  config::Sources sources_;
  config::Diagnostics found_;
};

}  // namespace troupe::apps
