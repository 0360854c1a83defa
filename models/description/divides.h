#pragma once

#include <cstdint>
#include <string>

#include "core/result.h"

namespace troupe::models {

/// An option of a model with its value.
struct NamedInteger {
  std::string name;
  std::int64_t value = 0;
};

/// Returns an error that names the nearest valid numbers unless `small` divides `large`.
Status check_divides(const NamedInteger& small, const NamedInteger& large);

}  // namespace troupe::models
