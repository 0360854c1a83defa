#include "config/schema/key.h"

namespace troupe::config {

std::string_view Key::section() const {
  const auto dot = name.rfind('.');
  return dot == name.npos ? std::string_view() : std::string_view(name).substr(0, dot);
}

std::string_view Key::leaf() const {
  const auto dot = name.rfind('.');
  return dot == name.npos ? std::string_view(name) : std::string_view(name).substr(dot + 1);
}

}  // namespace troupe::config
