#include "models/description/divides.h"

namespace troupe::models {
namespace {

constexpr std::int64_t most_tried = 1 << 20;

std::string said(const NamedInteger& option) {
  return "model." + option.name + " = " + std::to_string(option.value);
}

}  // namespace

Status check_divides(const NamedInteger& small, const NamedInteger& large) {
  if (small.value <= 0 || large.value < 0)
    return Error{said(small) + " cannot divide " + said(large) + "; use positive numbers"};
  if (large.value % small.value == 0) return Done{};
  std::string nearest;
  for (auto below = small.value; below > 0 && small.value - below < most_tried; --below)
    if (large.value % below == 0) {
      nearest = std::to_string(below);
      break;
    }
  for (auto above = small.value; above <= large.value && above - small.value < most_tried; ++above)
    if (large.value % above == 0) {
      nearest += (nearest.empty() ? "" : ", ") + std::to_string(above);
      break;
    }
  return Error{said(large) + " is not divisible by " + said(small) +
               (nearest.empty() ? "" : "; nearest: " + nearest)};
}

}  // namespace troupe::models
