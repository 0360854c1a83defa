#include "kernels/rope.h"

#include <algorithm>

#include "tests/kernels/differences.h"

namespace troupe::kernels {
namespace {

struct Sizes {
  std::int64_t batch, length, heads, width;
};

/// Rows have two more elements than their heads.
std::int64_t row(const Sizes& s) { return s.heads * s.width + 2; }

Floats turned(Stream& stream, const Sizes& s, Rotation rotation, Floats x, const RopeForm& form) {
  rope(stream, rotation, {x.data(), row(s)}, s.batch, s.length, s.heads, s.width, form);
  return x;
}

/// Returns the frequency of a pair, as the papers write it.
double frequency(const RopeForm& form, std::int64_t i, std::int64_t width) {
  const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(form.turned(width));
  const double plain = std::pow(form.theta, exponent);
  const double wavelength = 2 * 3.14159265358979323846 / plain;
  switch (form.scaling) {
    case RopeForm::Scaling::none:
      return plain;
    case RopeForm::Scaling::linear:
      return plain / form.factor;
    case RopeForm::Scaling::yarn: {
      const double ramp = (static_cast<double>(i) - form.low) / (form.high - form.low);
      const double share = 1 - std::clamp(ramp, 0.0, 1.0);
      return plain / form.factor * (1 - share) + plain * share;
    }
    case RopeForm::Scaling::llama3:
      break;
  }
  if (wavelength < form.context / form.high) return plain;
  if (wavelength > form.context / form.low) return plain / form.factor;
  const double smooth = (form.context / wavelength - form.low) / (form.high - form.low);
  return (1 - smooth) * plain / form.factor + smooth * plain;
}

Doubles reference(const Sizes& s, Doubles x, const RopeForm& form) {
  const auto at = [&](std::int64_t i) -> double& { return x[static_cast<std::size_t>(i)]; };
  const bool is_apart = form.pairs == RopeForm::Pairs::neighbours;
  const std::int64_t pairs = form.turned(s.width) / 2;
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t p = 0; p < s.length; ++p)
      for (std::int64_t h = 0; h < s.heads; ++h)
        for (std::int64_t i = 0; i < pairs; ++i) {
          const std::int64_t head = (b * s.length + p) * row(s) + h * s.width;
          const std::int64_t first = head + (is_apart ? 2 * i : i);
          const std::int64_t other = is_apart ? first + 1 : first + pairs;
          const double angle = static_cast<double>(p) * frequency(form, i, s.width);
          const double u = at(first), w = at(other);
          const double cosine = form.stretch * std::cos(angle);
          const double sine = form.stretch * std::sin(angle);
          at(first) = u * cosine - w * sine;
          at(other) = w * cosine + u * sine;
        }
  return x;
}

Floats turned(Stream& stream, const Sizes& s, Rotation rotation, Floats x, double theta) {
  rope(stream, rotation, {x.data(), row(s)}, s.batch, s.length, s.heads, s.width, {.theta = theta});
  return x;
}

Doubles reference(const Sizes& s, Doubles x, double theta) {
  const auto at = [&](std::int64_t i) -> double& { return x[static_cast<std::size_t>(i)]; };
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t p = 0; p < s.length; ++p)
      for (std::int64_t h = 0; h < s.heads; ++h)
        for (std::int64_t i = 0; i < s.width / 2; ++i) {
          const std::int64_t first = (b * s.length + p) * row(s) + h * s.width + i;
          const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(s.width);
          const double angle = static_cast<double>(p) * std::pow(theta, exponent);
          const double u = at(first), w = at(first + s.width / 2);
          at(first) = u * std::cos(angle) - w * std::sin(angle);
          at(first + s.width / 2) = w * std::cos(angle) + u * std::sin(angle);
        }
  return x;
}

}  // namespace

TEST_CASE("rotary embedding rotates each pair by its angle", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  for (const Sizes& s : {Sizes{1, 1, 1, 2}, {2, 5, 3, 6}, {1, 40, 2, 64}, {1, 33, 1, 38}})
    for (const double theta : {1.0, 2.5, 10000.0, 500000.0}) {
      INFO("length " << s.length << ", width " << s.width << ", theta " << theta);
      const Floats x = numbers(s.batch * s.length * row(s), 1);
      CHECK(close(turned(stream, s, Rotation::forward, x, theta), reference(s, doubles(x), theta),
                  1));
    }
}

TEST_CASE("rotary embedding takes other pairs, a part of a head and scaled frequencies",
          "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  using enum RopeForm::Pairs;
  using enum RopeForm::Scaling;
  for (const RopeForm& form :
       {RopeForm{.pairs = neighbours}, RopeForm{.part = 6},
        RopeForm{.part = 4, .pairs = neighbours},
        RopeForm{.theta = 500000, .scaling = linear, .factor = 3},
        RopeForm{.scaling = llama3, .factor = 8, .context = 100},
        RopeForm{.scaling = yarn, .factor = 4, .low = 2, .high = 7},
        RopeForm{.part = 16, .pairs = neighbours, .scaling = llama3, .factor = 8, .low = 2}}) {
    const Sizes s{2, 40, 3, 20};
    INFO("part " << form.part << ", factor " << form.factor);
    const Floats x = numbers(s.batch * s.length * row(s), 1);
    const Floats there = turned(stream, s, Rotation::forward, x, form);
    CHECK(close(there, reference(s, doubles(x), form), 1));
    CHECK(close(turned(stream, s, Rotation::back, there, form), doubles(x), 2));
    CHECK(same_bits([&](Stream& on) { return turned(on, s, Rotation::forward, x, form); }));
  }
}

TEST_CASE("a stretch of rotary embedding is a factor in both directions", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  const Sizes s{1, 9, 2, 8};
  const RopeForm form{.stretch = 1.25f};
  const Floats x = numbers(s.length * row(s), 1), dy = numbers(s.length * row(s), 2);
  const auto f = [&](const Doubles& at) { return reference(s, at, form); };
  CHECK(close(turned(stream, s, Rotation::forward, x, form), f(doubles(x)), 2));
  CHECK(close(turned(stream, s, Rotation::back, dy, form), numerical_gradient(f, x, dy), 2));
}

TEST_CASE("rotary embedding is as accurate at far positions as at near ones", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool, 2);
  const Sizes s{1, 100000, 1, 6};
  const Floats x = numbers(s.length * row(s), 1);
  CHECK(close(turned(stream, s, Rotation::forward, x, 10000), reference(s, doubles(x), 10000), 1));
}

TEST_CASE("rotary embedding of a part of a sequence has the bits of the whole", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  const Sizes s{1, 40, 2, 12};
  const Floats x = numbers(s.batch * s.length * row(s), 1);
  for (const RopeForm& form : {RopeForm{}, RopeForm{.pairs = RopeForm::Pairs::neighbours}}) {
    Floats whole = x;
    rope(stream, Rotation::forward, {whole.data(), row(s)}, 1, s.length, s.heads, s.width, form);
    Floats parts = x;
    for (const auto& [first, length] :
         {std::pair<std::int64_t, std::int64_t>{0, 17}, {17, 1}, {18, 22}})
      rope(stream, Rotation::forward, {parts.data() + first * row(s), row(s)}, 1, length, s.heads,
           s.width, form, first);
    CHECK((parts == whole));
  }
}

TEST_CASE("the gradient of rotary embedding agrees with finite differences", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  const Sizes s{1, 3, 1, 4};
  const Floats x = numbers(s.length * row(s), 1), dy = numbers(s.length * row(s), 2);
  const auto f = [&](const Doubles& at) { return reference(s, at, 10000); };
  CHECK(close(turned(stream, s, Rotation::back, dy, 10000), numerical_gradient(f, x, dy), 1));
}

TEST_CASE("rotary embedding has the same bits with any number of threads and instruction set",
          "[kernels]") {
  const Sizes s{2, 50, 3, 22};
  const Floats x = numbers(s.batch * s.length * row(s), 1);
  CHECK(same_bits([&](Stream& stream) { return turned(stream, s, Rotation::forward, x, 10000); }));
}

}  // namespace troupe::kernels
