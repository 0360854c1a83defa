#pragma once

#include <chrono>

namespace troupe {

template <class Number, class Period>
double in_seconds(std::chrono::duration<Number, Period> time) {
  return std::chrono::duration<double>(time).count();
}
inline std::chrono::nanoseconds from_seconds(double seconds) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(seconds));
}

}  // namespace troupe
