#include "models/initial_weights.h"

#include <algorithm>
#include <array>

#include "core/digest.h"
#include "core/random.h"
#include "kernels/on_cores.h"
#include "models/arithmetic.h"

namespace troupe::models {
namespace {

/// Keys that no two names share, nor with anything else that is drawn.
RandomKey key_of(const std::string& name, std::uint64_t seed) {
  const Digest digest = digest_of(name);
  return {.seed = seed ^ digest.high,
          .step = static_cast<std::uint32_t>(digest.low >> 32),
          .sample = static_cast<std::uint32_t>(digest.low),
          .operation = 0x80000000u};
}

using Four = std::array<float, 4>;

Four four_normal(const std::array<std::uint32_t, 4>& words) {
  const auto [a, b] = normal_pair(words[0], words[1]);
  const auto [c, d] = normal_pair(words[2], words[3]);
  return {a, b, c, d};
}

Four four_uniform(const std::array<std::uint32_t, 4>& words) {
  Four four;
  std::ranges::transform(words, four.begin(), [](auto word) { return 2 * uniform(word) - 1; });
  return four;
}

/// What lies from element `first` on, a multiple of four.
template <class Draw>
void draw_all(Stream& stream, Tensor& value, const RandomKey& key, std::int64_t first, float scale,
              Draw draw) {
  constexpr std::int64_t grain = 16'384;  // Blocks of four.
  const std::int64_t count = value.count(), blocks = (count + 3) / 4, before = first / 4;
  float* to = value.numbers<float>().data();
  stream.for_each((blocks + grain - 1) / grain, [=](std::int64_t part) {
    for (auto block = part * grain; block < std::min(blocks, (part + 1) * grain); ++block) {
      const Four four = draw(key.words(static_cast<std::uint32_t>(before + block)));
      for (std::int64_t i = 0; i < std::min<std::int64_t>(4, count - 4 * block); ++i)
        to[4 * block + i] = scale * four[static_cast<std::size_t>(i)];
    }
  });
}

}  // namespace

Tensor initial_value(Stream& stream, const Parameter& parameter, std::uint64_t seed) {
  if (stream.device()) {
    kernels::OnCores on(stream);
    return stream.to_here(initial_value(on.cores(), parameter, seed));
  }
  Tensor value = stream.make(parameter.shape, parameter.type);
  const auto key = key_of(parameter.name, seed);
  switch (parameter.init.kind) {
    case Init::Kind::zeros:
      fill(stream, 0, value);
      break;
    case Init::Kind::ones:
      fill(stream, 1, value);
      break;
    case Init::Kind::normal:
      draw_all(stream, value, key, parameter.first, parameter.init.scale, four_normal);
      break;
    case Init::Kind::uniform:
      draw_all(stream, value, key, parameter.first, parameter.init.scale, four_uniform);
      break;
  }
  return value;
}

}  // namespace troupe::models
