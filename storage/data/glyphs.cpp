#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <string_view>

#include "storage/data/made_data.h"

namespace troupe::storage {
namespace {

constexpr int glyph_width = 6;
constexpr int glyph_height = 8;
constexpr int glyph_count = 10;

constexpr std::array<std::string_view, glyph_count* glyph_height> bitmaps = {
    " #### ", "##  ##", "#    #", "#    #", "#    #", "#    #", "##  ##", " #### ",  // 0
    "   #  ", "  ##  ", " # #  ", "   #  ", "   #  ", "   #  ", "   #  ", " #### ",  // 1
    " #### ", "#    #", "     #", "    # ", "  ##  ", " #    ", "#     ", "######",  // 2
    "##### ", "     #", "     #", "  ### ", "     #", "     #", "     #", "##### ",  // 3
    "#   # ", "#   # ", "#   # ", "#   # ", "######", "    # ", "    # ", "    # ",  // 4
    "######", "#     ", "#     ", "##### ", "     #", "     #", "#    #", " #### ",  // 5
    "  ### ", " #    ", "#     ", "##### ", "#    #", "#    #", "#    #", " #### ",  // 6
    "######", "     #", "    # ", "    # ", "   #  ", "   #  ", "  #   ", "  #   ",  // 7
    " #### ", "#    #", "#    #", " #### ", "#    #", "#    #", "#    #", " #### ",  // 8
    " #### ", "#    #", "#    #", "#    #", " #####", "     #", "    # ", " ###  ",  // 9
};

/// Sampling points along each side of a pixel.
constexpr int fineness = 4;

/// The place of a glyph in an image, in units of 1 / fineness of a pixel.
struct Frame {
  std::int32_t left, top, width, height;
};

/// Returns how much of a pixel is ink: 0 to fineness^2.
int ink(int digit, const Frame& frame, int column, int row) {
  int covered = 0;
  for (int dy = 0; dy < fineness; ++dy)
    for (int dx = 0; dx < fineness; ++dx) {
      const int x = column * fineness + dx - frame.left;
      const int y = row * fineness + dy - frame.top;
      if (x < 0 || y < 0 || x >= frame.width || y >= frame.height) continue;
      const auto& line =
          bitmaps[static_cast<std::size_t>(digit * glyph_height + y * glyph_height / frame.height)];
      covered += line[static_cast<std::size_t>(x * glyph_width / frame.width)] == '#';
    }
  return covered;
}

class Glyphs final : public Dataset {
  using Target = GlyphOptions::Target;

 public:
  explicit Glyphs(const GlyphOptions& options)
      : options_(options),
        shape_{Shape{options.channels, options.size, options.size}, DType::f32, Shape{}, DType::i32,
               "image"} {
    if (options.target == Target::digit) return;
    const std::int64_t channels = options.target == Target::mask ? 1 : options.channels;
    shape_.target = Shape{channels, options.size, options.size};
    shape_.target_type = DType::f32;
  }

  std::int64_t count() const override { return options_.samples; }
  const SampleShape& shape() const override { return shape_; }
  std::int64_t classes() const override {
    return options_.target == Target::digit ? glyph_count : 1;
  }
  std::string description() const override {
    const auto size = std::to_string(options_.size);
    const std::string target = options_.target == Target::mask    ? ", and their ink"
                               : options_.target == Target::clean ? ", and the same without noise"
                                                                  : "";
    return "digits as images of " + size + " x " + size + " pixels, " +
           std::to_string(options_.channels) + (options_.channels == 1 ? " channel" : " channels") +
           target;
  }

  Status read(const Place& place, const SampleSpans& to) const override {
    const auto index = place.sample;
    const auto input = to.inputs[0], target = to.target;
    assert(index >= 0 && index < count());
    assert(to.fits(shape_));
    // Integers alone determine a pixel, so that all machines agree.
    Draws draws(options_.key, index);
    const std::int32_t digit = draws.between(0, glyph_count - 1);
    const auto frame = draw_frame(draws);
    std::size_t at = 0;
    const auto put = [&](std::span<std::byte> to, float pixel) {
      std::memcpy(&to[at], &pixel, sizeof pixel);
    };
    for (std::int32_t channel = 0; channel < options_.channels; ++channel) {
      const auto brightness = draws.between(140, 255);
      for (int row = 0; row < options_.size; ++row)
        for (int column = 0; column < options_.size; ++column) {
          const auto covered = ink(digit, frame, column, row);
          const auto clean = brightness * covered / (fineness * fineness);
          const auto noisy = clean + draws.between(-options_.noise, options_.noise);
          put(input, static_cast<float>(std::clamp(noisy, 0, 255)) / 255.0f);
          if (options_.target == Target::clean) put(target, static_cast<float>(clean) / 255.0f);
          if (options_.target == Target::mask && channel == 0)
            put(target, 2 * covered >= fineness * fineness ? 1.0f : 0.0f);
          at += sizeof(float);
        }
    }
    if (options_.target == Target::digit) std::memcpy(target.data(), &digit, sizeof digit);
    return Done{};
  }

 private:
  /// Draws a height of five to nine tenths of the image and a position anywhere in it.
  Frame draw_frame(Draws& draws) const {
    const std::int32_t side = options_.size * fineness;
    Frame frame{};
    frame.height = draws.between(side * 5 / 10, side * 9 / 10);
    frame.width = std::max(frame.height * draws.between(60, 85) / 100, 1);
    frame.left = draws.between(0, side - frame.width);
    frame.top = draws.between(0, side - frame.height);
    return frame;
  }

  GlyphOptions options_;
  SampleShape shape_;
};

}  // namespace

std::unique_ptr<Dataset> make_glyphs(const GlyphOptions& options) {
  return std::make_unique<Glyphs>(options);
}

}  // namespace troupe::storage
