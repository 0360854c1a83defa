#include "kernels/dropout.h"

#include "tests/kernels/differences.h"

namespace troupe::kernels {
namespace {

Floats dropped(Stream& stream, const RandomKey& key, float rate, const Floats& x,
               std::int64_t samples) {
  Floats y(x.size());
  dropout(stream, key, rate, x.data(), y.data(), samples,
          static_cast<std::int64_t>(x.size()) / samples);
  return y;
}

TEST_CASE("dropout keeps the elements whose random number is at least the rate", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  const RandomKey key{.seed = 0x123456789abcdef0, .step = 3, .sample = 5, .operation = 9};
  for (const std::int64_t per_sample : {1, 3, 4, 5, 31, 64, 67, 1001, 16'384, 16'389})
    for (const float rate : {0.0f, 0.1f, 0.5f, 0.9f}) {
      INFO(per_sample << " at " << rate);
      const Floats x(static_cast<std::size_t>(3 * per_sample), 2);
      Floats expected;
      for (std::uint32_t sample = 0; sample < 3; ++sample) {
        RandomKey own = key;
        own.sample = 5 + sample;
        for (std::uint32_t i = 0; i < per_sample; ++i)
          expected.push_back(uniform(own.words(i / 4)[i % 4]) >= rate ? 2 * (1 / (1 - rate)) : 0);
      }
      CHECK(dropped(stream, key, rate, x, 3) == expected);
    }
}

TEST_CASE("dropout does not depend on how samples are cut into micro-batches", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  const auto x = numbers(4 * 37, 1);
  const auto whole = dropped(stream, {.seed = 1, .sample = 8}, 0.3f, x, 4);
  const Floats second_half(x.begin() + 2 * 37, x.end());
  CHECK(dropped(stream, {.seed = 1, .sample = 10}, 0.3f, second_half, 2) ==
        Floats(whole.begin() + 2 * 37, whole.end()));
}

TEST_CASE("dropout keeps the mean of its input", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  double sum = 0;
  for (const float y : dropped(stream, {.seed = 4}, 0.25f, Floats(100'000, 1), 1)) sum += y;
  CHECK(sum / 100'000 == Approx(1).margin(0.01));
}

TEST_CASE("dropout gives the same results in place", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  auto x = numbers(333, 1);
  const auto expected = dropped(stream, {.seed = 2}, 0.5f, x, 3);
  dropout(stream, {.seed = 2}, 0.5f, x.data(), x.data(), 3, 111);
  CHECK(x == expected);
}

TEST_CASE("dropout has the same bits with any number of threads and any instruction set",
          "[kernels]") {
  const auto x = numbers(3 * 20'003, 1);
  CHECK(same_bits([&](Stream& stream) { return dropped(stream, {.seed = 3}, 0.2f, x, 3); }));
}

}  // namespace
}  // namespace troupe::kernels
