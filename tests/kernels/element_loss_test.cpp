#include "kernels/element_loss.h"

#include <algorithm>
#include <limits>

#include "tests/kernels/differences.h"

namespace troupe::kernels {
namespace {

constexpr float none = std::numeric_limits<float>::quiet_NaN();

struct ElementLosses {
  Floats losses;
  Floats dz;
};

ElementLosses computed(Stream& stream, ElementLoss loss, const Floats& z, const Floats& targets,
                       float scale) {
  ElementLosses result{Floats(z.size()), Floats(z.size())};
  element_loss(stream, loss, z.data(), targets.data(), result.losses.data(), result.dz.data(),
               static_cast<std::int64_t>(z.size()), scale);
  return result;
}

double loss_of(ElementLoss loss, double z, double t) {
  if (std::isnan(t)) return 0;
  if (loss == ElementLoss::squared) return (z - t) * (z - t);
  return std::max(z, 0.0) - z * t + std::log1p(std::exp(-std::abs(z)));
}

double slope_of(ElementLoss loss, double z, double t) {
  if (std::isnan(t)) return 0;
  return loss == ElementLoss::squared ? 2 * (z - t) : 1 / (1 + std::exp(-z)) - t;
}

/// Targets from 0 to 1, of which some are no targets.
Floats some_targets(std::size_t count) {
  Floats targets = numbers(static_cast<std::int64_t>(count), 5);
  for (std::size_t i = 0; i < count; ++i)
    targets[i] = i % 7 == 3 ? none : i % 3 == 0 ? (i % 2 ? 1.0f : 0.0f) : std::abs(targets[i]) / 4;
  return targets;
}

}  // namespace

TEST_CASE("losses of numbers and their gradients match the formulas", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool, 2);
  const auto loss = GENERATE(ElementLoss::binary, ElementLoss::squared);
  const auto z = numbers_up_to(20, GENERATE(1, 5, 33, 40'001), 3);
  const auto targets = some_targets(z.size());
  const auto [losses, dz] = computed(stream, loss, z, targets, 0.5f);
  for (std::size_t i = 0; i < z.size(); ++i) {
    CAPTURE(i, z[i], targets[i]);
    REQUIRE(losses[i] == Approx(loss_of(loss, z[i], targets[i])).epsilon(1e-6).margin(1e-6));
    REQUIRE(dz[i] == Approx(0.5 * slope_of(loss, z[i], targets[i])).epsilon(1e-6).margin(1e-6));
  }
}

TEST_CASE("a binary loss keeps its precision far from zero", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool, 1);
  const Floats z = {-3e38f, -100, -30, -17, -1e-6f, 0, 1e-6f, 17, 30, 100, 3e38f};
  for (const float target : {0.0f, 1.0f}) {
    const Floats targets(z.size(), target);
    const auto [losses, dz] = computed(stream, ElementLoss::binary, z, targets, 1);
    for (std::size_t i = 0; i < z.size(); ++i) {
      CAPTURE(z[i], target);
      // Denormal numbers may be zeros.
      CHECK(losses[i] ==
            Approx(loss_of(ElementLoss::binary, z[i], target)).epsilon(1e-6).margin(1e-37));
      CHECK(dz[i] ==
            Approx(slope_of(ElementLoss::binary, z[i], target)).epsilon(1e-6).margin(6e-8));
    }
  }
}

TEST_CASE("without a target the loss and its gradient are 0, whatever the output", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool, 1);
  const auto loss = GENERATE(ElementLoss::binary, ElementLoss::squared);
  const Floats z = {none, std::numeric_limits<float>::infinity(), -4, none};
  const auto [losses, dz] = computed(stream, loss, z, {none, none, none, 0.5f}, 1);
  CHECK(std::equal(losses.begin(), losses.begin() + 3, Floats{0, 0, 0}.begin()));
  CHECK(std::equal(dz.begin(), dz.begin() + 3, Floats{0, 0, 0}.begin()));
  // A NaN of the model is no missing target.
  CHECK(std::isnan(losses[3]));
  CHECK(std::isnan(dz[3]));
}

TEST_CASE("losses alone, and gradients in place of the output, are the same", "[kernels]") {
  MemoryPool pool;
  Stream stream(pool, 1);
  const auto loss = GENERATE(ElementLoss::binary, ElementLoss::squared);
  auto z = numbers_up_to(9, 77, 3);
  const auto targets = some_targets(z.size());
  const auto [losses, dz] = computed(stream, loss, z, targets, 2);
  Floats alone(z.size());
  element_loss(stream, loss, z.data(), targets.data(), alone.data(), nullptr, 77, 2);
  CHECK(alone == losses);
  element_loss(stream, loss, z.data(), targets.data(), alone.data(), z.data(), 77, 2);
  CHECK(z == dz);
}

TEST_CASE("losses of numbers have the same bits with any threads and instruction set",
          "[kernels]") {
  const auto loss = GENERATE(ElementLoss::binary, ElementLoss::squared);
  const auto z = numbers_up_to(30, 3 * 16'384 + 7, 1);
  const auto targets = some_targets(z.size());
  CHECK(same_bits([&](Stream& stream) {
    auto [losses, dz] = computed(stream, loss, z, targets, 0.125f);
    dz.insert(dz.end(), losses.begin(), losses.end());
    return dz;
  }));
}

}  // namespace troupe::kernels
