#include "kernels/softmax_cross_entropy.h"

#include <algorithm>
#include <limits>

#include "tests/kernels/differences.h"

namespace troupe::kernels {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
using Targets = std::vector<std::int32_t>;

struct Losses {
  Floats losses;
  Floats dlogits;
};

Losses computed(Stream& stream, const Floats& logits, const Targets& targets, float scale,
                const CrossEntropyForm& form = {}) {
  const auto rows = static_cast<std::int64_t>(targets.size());
  Losses result{Floats(targets.size()), Floats(logits.size())};
  softmax_cross_entropy(stream, logits.data(), targets.data(), result.losses.data(),
                        result.dlogits.data(), rows,
                        static_cast<std::int64_t>(logits.size()) / rows, scale, form);
  return result;
}

struct Reference {
  Doubles losses;
  Doubles dlogits;
};

Reference reference(const Floats& logits, const Targets& targets, double scale,
                    const CrossEntropyForm& form = {}) {
  const std::size_t classes = logits.size() / targets.size();
  Reference result;
  for (std::size_t r = 0; r < targets.size(); ++r) {
    if (targets[r] == form.ignore) {
      result.losses.push_back(0);
      result.dlogits.insert(result.dlogits.end(), classes, 0);
      continue;
    }
    const float* row = logits.data() + r * classes;
    const double most = *std::max_element(row, row + classes);
    double sum = 0, mean = 0;
    for (std::size_t c = 0; c < classes; ++c) {
      sum += std::exp(row[c] - most);
      mean += row[c] / static_cast<double>(classes);
    }
    const auto target = static_cast<std::size_t>(targets[r]);
    const double lse = most + std::log(sum), spread = form.smoothing;
    result.losses.push_back(lse - (1 - spread) * row[target] - spread * mean + form.z * lse * lse);
    for (std::size_t c = 0; c < classes; ++c)
      result.dlogits.push_back(scale * (std::exp(row[c] - most) / sum * (1 + 2 * form.z * lse) -
                                        (1 - spread) * (c == target) -
                                        spread / static_cast<double>(classes)));
  }
  return result;
}

TEST_CASE("the loss and its gradient agree with their formulas", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  // Up to 300,001 classes: several chunks, and more than the chunk limit at the minimum size.
  for (const std::int64_t classes : {1, 2, 15, 17, 257, 4096, 4097, 9001, 300'001}) {
    INFO(classes);
    const auto last = static_cast<std::int32_t>(classes - 1);
    const Targets targets{0, last, last / 2};
    const auto logits = numbers_up_to(12, 3 * classes, 1);
    const auto [losses, dlogits] = computed(stream, logits, targets, 0.25f);
    const auto expected = reference(logits, targets, 0.25);
    CHECK(close(losses, expected.losses, 1));
    CHECK(close(dlogits, expected.dlogits, 1));
  }
}

TEST_CASE("each form of the loss and its gradient agree with their formulas", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  const CrossEntropyForm form =
      GENERATE(CrossEntropyForm{.smoothing = 0.1f}, CrossEntropyForm{.z = 1e-2f},
               CrossEntropyForm{.ignore = -100, .smoothing = 0.25f, .z = 1e-3f});
  for (const std::int64_t classes : {2, 17, 4097, 9001}) {
    INFO(classes << " classes, smoothing " << form.smoothing << ", z " << form.z);
    const auto last = static_cast<std::int32_t>(classes - 1);
    const Targets targets{0, form.ignore.value_or(1), last};
    const auto logits = numbers_up_to(12, 3 * classes, 1);
    const auto [losses, dlogits] = computed(stream, logits, targets, 0.25f, form);
    const auto expected = reference(logits, targets, 0.25, form);
    CHECK(close(losses, expected.losses, 1));
    CHECK(close(dlogits, expected.dlogits, 1));
  }
}

TEST_CASE("rows that do not count leave the bits of the others", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  const std::size_t classes = 5003;
  auto logits = numbers_up_to(5, 3 * classes, 1);
  const auto all = computed(stream, logits, {17, 3, 5002}, 1);
  logits[classes + 9] = std::numeric_limits<float>::quiet_NaN();
  const auto some = computed(stream, logits, {17, 3, 5002}, 1, {.ignore = 3});
  CHECK(some.losses == Floats{all.losses[0], 0, all.losses[2]});
  for (std::size_t i = 0; i < 3 * classes; ++i)
    if (some.dlogits[i] != (i / classes == 1 ? 0 : all.dlogits[i])) FAIL(i);
}

TEST_CASE("the gradient of the loss agrees with finite differences", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  const auto logits = numbers_up_to(4, 3 * 23, 1);
  const Targets targets{22, 0, 7};
  const auto loss = [&](const Doubles& x) {
    Doubles losses;
    for (std::size_t r = 0; r < 3; ++r) {
      double sum = 0;
      for (std::size_t c = 0; c < 23; ++c) sum += std::exp(x[r * 23 + c]);
      losses.push_back(std::log(sum) - x[r * 23 + static_cast<std::size_t>(targets[r])]);
    }
    return losses;
  };
  CHECK(close(computed(stream, logits, targets, 0.5f).dlogits,
              numerical_gradient(loss, logits, Floats(3, 0.5f)), 1));
}

TEST_CASE("the loss is the same if gradients overwrite the logits or are not computed",
          "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  const std::int64_t classes = 5003;
  auto logits = numbers_up_to(5, 2 * classes, 1);
  const Targets targets{5002, 17};
  const auto [losses, dlogits] = computed(stream, logits, targets, 1);
  Floats again(2);
  softmax_cross_entropy(stream, logits.data(), targets.data(), again.data(), nullptr, 2, classes,
                        1);
  CHECK(again == losses);
  softmax_cross_entropy(stream, logits.data(), targets.data(), again.data(), logits.data(), 2,
                        classes, 1);
  CHECK(again == losses);
  CHECK(logits == dlogits);
}

TEST_CASE("the loss accepts huge logits and logits of minus infinity", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  const auto huge = computed(stream, {3e38f, -3e38f, 3e38f}, {2}, 1);
  CHECK(huge.losses[0] == Approx(std::log(2)));
  CHECK(huge.dlogits == Floats{0.5f, 0, -0.5f});

  // All logits of the middle chunk are -infinity.
  Floats logits(10'000, -infinity);
  logits[1] = logits[9999] = 4;
  const auto ruled_out = computed(stream, logits, {9999}, 1);
  CHECK(ruled_out.losses[0] == Approx(std::log(2)));
  CHECK(ruled_out.dlogits[1] == 0.5f);
  CHECK(ruled_out.dlogits[9999] == -0.5f);
  CHECK(ruled_out.dlogits[0] == 0);
  CHECK(ruled_out.dlogits[5000] == 0);
  CHECK(computed(stream, logits, {5000}, 1).losses[0] == infinity);
}

TEST_CASE("a NaN among the logits reaches its row and no other row", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool);
  const std::size_t classes = 8200;
  for (const std::size_t place : {std::size_t{0}, std::size_t{4100}, classes - 1}) {
    INFO(place);
    auto logits = numbers(2 * classes, 1);
    logits[place] = std::numeric_limits<float>::quiet_NaN();
    const auto [losses, dlogits] = computed(stream, logits, {7, 7}, 1);
    CHECK(std::isnan(losses[0]));
    CHECK_FALSE(std::isnan(losses[1]));
    std::size_t spoiled = 0;
    for (const float number : dlogits) spoiled += std::isnan(number);
    CHECK(spoiled == classes);
  }
}

TEST_CASE("the loss has the same bits with any number of threads and any instruction set",
          "[kernels]") {
  const auto logits = numbers_up_to(30, 7 * 8207, 1);
  const CrossEntropyForm form =
      GENERATE(CrossEntropyForm{}, CrossEntropyForm{.ignore = 3, .smoothing = 0.1f, .z = 1e-4f});
  CHECK(same_bits([&](Stream& stream) {
    auto [losses, dlogits] = computed(stream, logits, {0, 1, 2, 3, 4, 5, 8206}, 0.125f, form);
    dlogits.insert(dlogits.end(), losses.begin(), losses.end());
    return dlogits;
  }));
}

}  // namespace
}  // namespace troupe::kernels
