#pragma once

#include <cstdint>

#include "core/memory/stream.h"
#include "kernels/attention.h"

namespace troupe::kernels {

enum class Rotation : std::uint8_t { forward, back };

/// How rotary position embedding rotates the first numbers of each head. Pair i has the frequency
/// theta^(-2i/turned), where `turned` is how many numbers are rotated.
struct RopeForm {
  /// The pair i: (x[i], x[i + turned/2]), or (x[2i], x[2i + 1]) as in GPT-J.
  enum class Pairs : std::uint8_t { halves, neighbours };
  /// How frequencies change for contexts longer than those of a model's first training.
  enum class Scaling : std::uint8_t {
    none,
    linear,  // Divides each by `factor`.
    llama3,  // Divides only low ones; those between the bounds partly.
    yarn,    // Divides those of late pairs; those of pairs between the bounds partly.
  };

  double theta = 10000;
  std::int64_t part = 0;  // The numbers of a head that are rotated. 0: all.
  Pairs pairs = Pairs::halves;
  Scaling scaling = Scaling::none;
  double factor = 1;
  double low = 1;         // llama3: turns in `context` below which a frequency is low; yarn: the
  double high = 4;        // first pair that is divided partly. high: the other bound.
  double context = 8192;  // llama3: the context of the first training.
  float stretch = 1;      // A factor on cosines and sines, which yarn has.

  constexpr std::int64_t turned(std::int64_t width) const { return part == 0 ? width : part; }

  /// Returns the frequency that takes the place of a pair's one by the formula above.
  constexpr double scaled(double frequency, std::int64_t pair) const {
    if (scaling == Scaling::none) return frequency;
    const double divided = frequency / factor;
    if (scaling == Scaling::linear) return divided;
    if (scaling == Scaling::yarn) {
      const double width = high > low ? high - low : 0.001;
      const double ramp = (static_cast<double>(pair) - low) / width;
      const double part_divided = ramp < 0 ? 0 : ramp > 1 ? 1 : ramp;
      return part_divided * divided + (1 - part_divided) * frequency;
    }
    constexpr double whole_turn = 6.283185307179586;
    const double turns = context * frequency / whole_turn;
    if (turns < low) return divided;
    if (turns > high) return frequency;
    const double share = (turns - low) / (high - low);
    return (1 - share) * divided + share * frequency;
  }
};

/// Applies rotary position embedding in place: rotates each pair at position p by the angle p times
/// its frequency. `back` rotates the other way. Row 0 of each sequence has the position `first`.
/// Angles are doubles, so that they are accurate at far positions.
void rope(Stream& stream, Rotation rotation, HeadsOut x, std::int64_t batch, std::int64_t length,
          std::int64_t heads, std::int64_t width, const RopeForm& form, std::int64_t first = 0);

/// Returns the difference of the logarithms of two neighbouring frequencies.
double rope_step(const RopeForm& form, std::int64_t width);

}  // namespace troupe::kernels
