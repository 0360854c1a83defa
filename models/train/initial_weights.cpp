#include "models/train/initial_weights.h"

#include <algorithm>
#include <array>
#include <thread>

#include "core/digest.h"
#include "core/random.h"
#include "models/arithmetic.h"

namespace troupe::models {
namespace {

/// Derives a key that no other parameter name and no other kind of draw shares.
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

/// Draws numbers from element `first` on, a multiple of four.
template <class Draw>
void draw_all(Stream& stream, float* to, std::int64_t count, const RandomKey& key,
              std::int64_t first, float scale, Draw draw) {
  constexpr std::int64_t grain = 16'384;  // Blocks of four.
  const std::int64_t blocks = (count + 3) / 4, before = first / 4;
  stream.for_each((blocks + grain - 1) / grain, [=](std::int64_t part) {
    for (auto block = part * grain; block < std::min(blocks, (part + 1) * grain); ++block) {
      const Four four = draw(key.words(static_cast<std::uint32_t>(before + block)));
      for (std::int64_t i = 0; i < std::min<std::int64_t>(4, count - 4 * block); ++i)
        to[4 * block + i] = scale * four[static_cast<std::size_t>(i)];
    }
  });
}

void draw_on_cores(Stream& cores, const Parameter& parameter, std::uint64_t seed,
                   std::int64_t first, std::int64_t count, float* to) {
  const auto key = key_of(parameter.name, seed);
  const auto place = parameter.first + first;
  const float scale = parameter.init.scale;
  if (parameter.init.kind == Init::Kind::normal)
    draw_all(cores, to, count, key, place, scale, four_normal);
  else
    draw_all(cores, to, count, key, place, scale, four_uniform);
}

/// Returns whether the stream executes its work. A rehearsal does not.
bool does_work(Stream& stream) {
  bool does = false;
  stream.for_each(1, [&](std::int64_t) { does = true; });
  return does;
}

/// Draws on the cores and copies the numbers to the device.
void draw_for_device(Stream& stream, const Parameter& parameter, std::uint64_t seed,
                     std::int64_t first, std::int64_t count, Tensor& value) {
  Stream core = stream.of_cores();
  if (!does_work(core)) return;
  Stream cores(stream.host_memory(), static_cast<int>(std::thread::hardware_concurrency()));
  Tensor drawn = cores.make({count});
  draw_on_cores(cores, parameter, seed, first, count, drawn.f32());
  stream.device()->copy(drawn.raw(), drawn.place(), value.f32() + first, drawn.bytes());
  stream.wait();
}

}  // namespace

void draw_initial(Stream& stream, const Parameter& parameter, std::uint64_t seed,
                  std::int64_t first, std::int64_t count, Tensor& value) {
  const auto kind = parameter.init.kind;
  if (kind == Init::Kind::zeros || kind == Init::Kind::ones) {
    // One kernel sets the whole tensor.
    if (first == 0) fill(stream, kind == Init::Kind::ones ? 1 : 0, value);
  } else if (stream.device()) {
    draw_for_device(stream, parameter, seed, first, count, value);
  } else {
    draw_on_cores(stream, parameter, seed, first, count, value.f32() + first);
  }
}

}  // namespace troupe::models
