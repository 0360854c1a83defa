#pragma once

#include <string_view>

#include "schedules/schedule.h"

namespace troupe::schedules {

/// Returns the name of an action kind in pictures and profiles.
constexpr std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::forward:
      return "forward";
    case Kind::backward:
      return "backward";
    case Kind::backward_input:
      return "backward, input";
    case Kind::backward_weight:
      return "backward, weights";
    case Kind::recompute:
      return "recompute";
    case Kind::give:
      return "reduce";
    case Kind::update:
      return "update";
    case Kind::gather:
      return "gather";
    case Kind::release:
      return "release";
  }
  return "?";
}

}  // namespace troupe::schedules
