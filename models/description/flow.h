#pragma once

#include <cstdint>
#include <string>

#include "core/memory/shape.h"

namespace troupe::models {

/// The form of a sample between two steps. A step takes one flow and gives another.
struct Flow {
  enum class Kind : std::uint8_t {
    tokens,  // [length], integers
    rows,    // [width], or [length, width]
    images,  // [channels, height, width]; a height or width of 0 means any
    spans,   // [length, 2], integers: the first and the end of what each row looks at
  };

  Kind kind = Kind::rows;
  Shape shape;
  std::int64_t below = 0;  // For tokens: all are smaller.

  bool has_integers() const { return kind == Kind::tokens || kind == Kind::spans; }

  /// Returns the width of rows or the channels of images; 0 for integers.
  std::int64_t width() const {
    if (has_integers()) return 0;
    return kind == Kind::images ? shape[0] : shape.last();
  }
};

/// Returns "tokens [24]", "rows of numbers [24, 32]", "images [128, 4, 4]" or "spans [24, 2]".
std::string to_text(const Flow& flow);

}  // namespace troupe::models
