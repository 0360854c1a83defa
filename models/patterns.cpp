#include "models/patterns.h"

#include <cstddef>

namespace troupe::models {

/// After a mismatch it goes back to the last `*` alone, which suffices and takes no more than
/// pattern times name steps.
bool matches_pattern(std::string_view pattern, std::string_view name) {
  std::size_t at = 0, letter = 0, star = pattern.npos, resumed = 0;
  while (letter < name.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      resumed = letter;
    } else if (at < pattern.size() && (pattern[at] == '?' || pattern[at] == name[letter])) {
      ++at;
      ++letter;
    } else if (star != pattern.npos) {
      at = star + 1;
      letter = ++resumed;
    } else {
      return false;
    }
  }
  while (at < pattern.size() && pattern[at] == '*') ++at;
  return at == pattern.size();
}

}  // namespace troupe::models
