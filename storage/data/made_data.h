#pragma once

#include <memory>

#include "storage/data/dataset.h"
#include "storage/data/draws.h"

namespace troupe::storage {

/// Tokens from a Markov source (markov_chain.h).
struct MarkovOptions {
  std::int32_t states = 64;
  std::int32_t successors = 4;  // At most `states`.
  std::int64_t samples = 100'000;
  DrawKey key;
};
std::unique_ptr<Dataset> make_markov(const MarkovOptions& options, std::int64_t context);

/// Images of the ten digits, shifted, scaled, and with varied brightness and noise. Pixels are
/// multiples of 1/255, so that IDX holds them exactly.
struct GlyphOptions {
  std::int32_t size = 28;
  std::int32_t channels = 1;  // All show the same digit, each with its own brightness.
  std::int32_t noise = 40;    // The most that noise changes a pixel, of 255.
  std::int64_t samples = 60'000;
  DrawKey key;
  /// The digit; or for each pixel whether half of it is ink, [1, size, size]; or the image without
  /// noise.
  enum class Target { digit, mask, clean } target = Target::digit;
};
std::unique_ptr<Dataset> make_glyphs(const GlyphOptions& options);

/// Points around one centre for each class. The centres are drawn from the standard normal
/// distribution.
struct GaussianOptions {
  std::int32_t dims = 16;
  std::int32_t classes = 4;
  std::int32_t spread = 25;  // The standard deviation of points, in hundredths.
  std::int64_t samples = 10'000;
  DrawKey key;
};
std::unique_ptr<Dataset> make_gaussians(const GaussianOptions& options);

}  // namespace troupe::storage
