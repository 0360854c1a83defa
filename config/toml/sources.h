#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/value.h"

namespace troupe::config {

/// All texts that a configuration is made from, numbered through as if they stood in one: a
/// position in the merged tree then says which text it came from as well.
class Sources {
 public:
  /// A place as a person reads it.
  struct Place {
    std::string_view
        source;             // "config/gpt.toml", "--set", "<stdin>"; empty where nothing is known.
    Position position;      // Within that source.
    std::string_view line;  // Its text.
  };

  /// Adds a text, and moves the positions in the tree that was read from it.
  void add(std::string name, std::string text, Value& tree);
  /// For a place in a text that gave no tree.
  Position add(std::string name, std::string text, Position position);

  /// Of a position without a line: nothing but the name of the first source.
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
