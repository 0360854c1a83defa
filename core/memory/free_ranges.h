#pragma once

#include <cstddef>
#include <map>
#include <optional>

namespace troupe {

/// Which parts of some memory nobody has, as distances from where it begins.
class FreeRanges {
 public:
  struct Range {
    std::size_t begin = 0;
    std::size_t length = 0;
  };

  /// The lowest part of this size, so that what is long stays in one piece.
  std::optional<std::size_t> take(std::size_t length);
  /// The highest part of this size.
  std::optional<std::size_t> take_highest(std::size_t length);
  /// Neighbours become one.
  void give(std::size_t begin, std::size_t length);

  std::size_t total() const;
  /// The highest one; of no length where there is none.
  Range last() const;

 private:
  std::map<std::size_t, std::size_t> ranges_;  // Begin, length. No two touch.
};

}  // namespace troupe
