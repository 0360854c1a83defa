#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/value.h"

namespace troupe::config {

/// All texts of a configuration. Their lines are numbered as if they were one text, so a position
/// in the merged tree also identifies its text.
class Sources {
 public:
  /// A place for people to read.
  struct Place {
    std::string_view source;  // "config/gpt.toml", "--set", "<stdin>"; empty if unknown.
    Position position;        // Within that source.
    std::string_view line;    // The text of the line.
  };

  /// Adds a text, and shifts the positions in the tree that was parsed from it.
  void add(std::string name, std::string text, Value& tree);
  /// Adds a text that could not be parsed. Returns the shifted position of the error.
  Position add(std::string name, std::string text, Position position);

  /// Returns the place of a position. Without a line it has only the name of the first source.
  Place find(Position position) const;

 private:
  struct Source {
    std::string name;
    std::string text;
    int lines_before = 0;
  };

  int append(std::string name, std::string text);

  std::vector<Source> sources_;
  int lines_ = 0;
};

}  // namespace troupe::config
