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
