#include "models/learning_rate.h"

#include <cmath>

#include "catch.h"

using namespace troupe::models;

TEST_CASE("warm-up rises in equal steps and reaches the rate at its last step", "[models]") {
  const LearningRate rate{.lr = 0.4, .warmup_steps = 4};
  CHECK(rate.at(0) == Approx(0.1));
  CHECK(rate.at(2) == Approx(0.3));
  CHECK(rate.at(3) == 0.4);
  CHECK(rate.at(1'000'000) == 0.4);
}

TEST_CASE("the linear schedule falls from the rate to the minimum", "[models]") {
  const LearningRate rate{.kind = LearningRate::Kind::linear,
                          .lr = 1,
                          .warmup_steps = 2,
                          .total_steps = 12,
                          .min_lr = 0.5};
  CHECK(rate.at(1) == 1);
  CHECK(rate.at(2) == 1);
  CHECK(rate.at(7) == Approx(0.75));
  CHECK(rate.at(12) == 0.5);
  CHECK(rate.at(100) == 0.5);
}

TEST_CASE("the cosine schedule follows half a cosine from the rate to the minimum", "[models]") {
  const LearningRate rate{
      .kind = LearningRate::Kind::cosine, .lr = 3, .total_steps = 1'000, .min_lr = 1};
  CHECK(rate.at(0) == 3);
  CHECK(rate.at(500) == Approx(2).epsilon(1e-15));
  CHECK(rate.at(1'000) == 1);
  CHECK(rate.at(2'000) == 1);
  for (int k = 0; k <= 1'000; ++k)
    CHECK(rate.at(k) == Approx(2 + std::cos(M_PI * k / 1'000)).epsilon(1e-15));
}

TEST_CASE("the minimum rate follows a warm-up that is as long as the run", "[models]") {
  const LearningRate rate{.kind = LearningRate::Kind::cosine,
                          .lr = 1,
                          .warmup_steps = 5,
                          .total_steps = 5,
                          .min_lr = 0.1};
  CHECK(rate.at(4) == 1);
  CHECK(rate.at(5) == 0.1);
}

TEST_CASE("wsd warms up, stays, and falls in the last steps", "[models]") {
  LearningRate rate{.kind = LearningRate::Kind::wsd,
                    .lr = 0.3,
                    .warmup_steps = 4,
                    .total_steps = 100,
                    .min_lr = 0.1,
                    .decay_steps = 20};
  CHECK(rate.at(1) == Approx(0.15));
  for (int k = 3; k <= 80; ++k) CHECK(rate.at(k) == 0.3);
  CHECK(rate.at(85) == Approx(0.25));
  CHECK(rate.at(100) == 0.1);
  CHECK(rate.at(500) == 0.1);
  CHECK(rate.highest_until(99) == 0.3);
  rate.decay = LearningRate::Decay::sqrt;
  CHECK(rate.at(80) == 0.3);
  CHECK(rate.at(85) == Approx(0.1 + 0.2 * (1 - std::sqrt(0.25))));
  CHECK(rate.at(100) == 0.1);
  rate.decay_steps.reset();
  CHECK(rate.at(90) == 0.3);
  CHECK(rate.at(91) < 0.3);
}

TEST_CASE("a factor scales every rate", "[models]") {
  LearningRate rate{.kind = LearningRate::Kind::cosine,
                    .lr = 0.3,
                    .warmup_steps = 4,
                    .total_steps = 100,
                    .min_lr = 0.1,
                    .changes = {{.from = 50, .lr = 0.7}}};
  LearningRate scaled = rate;
  scaled.factor = 0.1;
  for (int k = 0; k <= 110; ++k) CHECK(scaled.at(k) == 0.1 * rate.at(k));
  CHECK(scaled.highest_until(60) == 0.1 * rate.highest_until(60));
}
