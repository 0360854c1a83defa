#include "core/memory/shape.h"

namespace troupe {

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (const auto size : shape) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(size);
  }
  return text + "]";
}

}  // namespace troupe
