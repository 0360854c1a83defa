#include "actors/decide/improvement.h"

#include "catch.h"

using namespace troupe;
using namespace troupe::actors;

namespace {

using Steps = std::vector<storage::EvaluatedStep>;

}  // namespace

TEST_CASE("a run ends after as many evaluations in a row without an improvement", "[actors]") {
  const Steps losses = {{10, 3}, {20, 2}, {30, 2.5}, {40, 2}, {50, 1.5}, {60, 1.6}, {70, 1.5}};
  const auto stops_after = [&](const EarlyStop& rule) {
    for (std::size_t count = 0; count <= losses.size(); ++count)
      if (const auto stopped = stops_early(std::span(losses).first(count), rule))
        return std::pair(losses[count - 1].step, stopped->why);
    return std::pair(std::int64_t{0}, std::string());
  };
  CHECK(stops_after({}).first == 0);
  CHECK(stops_after({.after = 1}) ==
        std::pair(std::int64_t{30},
                  std::string("stopped early: no improvement of the validation loss in 1 "
                              "evaluation; the best was 2 after step 20")));
  CHECK(stops_after({.after = 2}).first == 40);
  CHECK(stops_after({.after = 3}).first == 0);
  // An improvement of exactly the least amount counts.
  CHECK(stops_after({.after = 2, .least = 0.5}).first == 40);
  CHECK(stops_after({.after = 3, .least = 0.5}).first == 0);
  // Small improvements add up until they count together.
  CHECK(stops_after({.after = 3, .least = 1.25}) ==
        std::pair(std::int64_t{40},
                  std::string("stopped early: no improvement of the validation loss by 1.25 in 3 "
                              "evaluations; the best was 2 after step 20")));
  CHECK(stops_after({.after = 4, .least = 1.25}).first == 0);
}

TEST_CASE("an evaluation is among the best if too few are as good", "[actors]") {
  const Steps losses = {{10, 3}, {20, 2}, {30, 2.5}, {40, 2}, {50, 1.5}};
  const auto best_of = [&](int most) {
    std::string steps;
    for (std::size_t count = 1; count <= losses.size(); ++count)
      if (newest_is_among_best(std::span(losses).first(count), most))
        steps += std::to_string(losses[count - 1].step) + " ";
    return steps;
  };
  CHECK_FALSE(newest_is_among_best({}, 1));
  CHECK(best_of(0).empty());
  CHECK(best_of(1) == "10 20 50 ");
  CHECK(best_of(2) == "10 20 30 40 50 ");
}
