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

/// A word of a line, and where it stands.
struct Word {
  std::string_view text;
  Position position;
};

/// Reads a text of lines, of which '#' begins what is for people only, and gathers what is wrong in
/// it. The text outlives it.
class LineReader {
 public:
  LineReader(std::string_view text, const std::string& name);

  /// The words of the next line that has some, apart by blanks.
  std::optional<std::vector<Word>> next();

  /// Something is wrong with a word; one without a position is the whole text.
  void fail(const Word& word, const std::string& what, const std::string& hint);
  bool ok() const { return found_.ok(); }
  /// In the style of compilers. Only where not ok().
  Error errors() const { return {found_.render(sources_)}; }

 private:
  std::string_view rest_;
  int line_ = 0;
  config::Sources sources_;
  config::Diagnostics found_;
};

}  // namespace troupe::apps
