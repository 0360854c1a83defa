#pragma once

#include <cstddef>
#include <map>
#include <optional>

namespace troupe {

/// The free parts of a memory area, as offsets from its beginning.
class FreeRanges {
 public:
  struct Range {
    std::size_t begin = 0;
    std::size_t length = 0;
  };

  /// Takes the beginning of the lowest range that is long enough, so that long ranges stay whole.
  std::optional<std::size_t> take(std::size_t length);
  /// Takes `length` bytes from the end of the highest range that is long enough.
  std::optional<std::size_t> take_highest(std::size_t length);
  /// Gives a range back and merges it with its free neighbours.
  void give(std::size_t begin, std::size_t length);

  std::size_t total() const;
  /// Returns the highest free range, or one of length 0 if nothing is free.
  Range last() const;

 private:
  std::map<std::size_t, std::size_t> ranges_;  // From begin to length. No two ranges touch.
};

}  // namespace troupe
