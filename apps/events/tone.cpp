#include "apps/events/tone.h"

#include <array>

namespace troupe::apps {

Tone tone_of_state(std::string_view state) {
  if (state == "running" || state == "done") return Tone::good;
  if (state == "failed" || state == "interrupted") return Tone::bad;
  return Tone::attention;  // It starts, is paused, waits for nodes or was stopped.
}

std::string toned(std::string text, Tone tone) {
  constexpr std::array<const char*, 4> codes = {"", "\x1b[32m", "\x1b[33m", "\x1b[31m"};
  if (tone == Tone::plain || text.empty()) return text;
  return codes[static_cast<std::size_t>(tone)] + text + "\x1b[m";
}

}  // namespace troupe::apps
