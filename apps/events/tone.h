#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe::apps {

/// The meaning of a text's colour on a terminal.
enum class Tone : std::uint8_t { plain, good, attention, bad };

/// Returns the tone of the state of a run: "running", "failed".
Tone tone_of_state(std::string_view state);

/// Adds the codes by which terminals colour a text. It takes as many columns as before.
std::string toned(std::string text, Tone tone);

}  // namespace troupe::apps
