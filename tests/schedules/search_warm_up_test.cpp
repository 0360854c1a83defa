#include "schedules/search/search_warm_up.h"

#include "catch.h"
#include "core/random.h"
#include "schedules/check/check.h"
#include "schedules/generators/generators.h"
#include "tables.h"

using namespace troupe;
using namespace troupe::schedules;

TEST_CASE("equal stages without hops warm up like 1f1b", "[schedules]") {
  CHECK(best_warm_up(uniform_costs(4, 1, {}), {}, 32) == std::vector<int>{4, 3, 2, 1});
  CHECK(best_warm_up(uniform_costs(4, 1, {}), {}, 2) == std::vector<int>{2, 2, 2, 1});
}

TEST_CASE("a longer warm-up hides hops", "[schedules]") {
  // A round trip over one hop takes 2 * 3 + 2 * 1, which is 8 / 3 periods, so each stage runs two
  // ahead of the next.
  CHECK(best_warm_up(uniform_costs(4, 1, {}, {.latency = 1}), {}, 32) ==
        std::vector<int>{7, 5, 3, 1});
}

TEST_CASE("a memory cap limits how far a stage runs ahead", "[schedules]") {
  const auto costs = uniform_costs(4, 1, {}, {.latency = 1});
  // With a period of 4, the round trips of 8, 13 and 18 take 2, 4 and 5 periods.
  const auto ahead = best_warm_up(costs, {5, 5, 5, 5}, 32);
  CHECK(ahead == std::vector<int>{5, 4, 2, 1});
  const auto fitted = with_credits("1f1b-window", 32, ahead);
  CHECK(check(fitted).empty());
  const auto simulation = play(fitted, costs);
  CHECK(simulation.largest_peak() == 5);
  CHECK(simulation.makespan < play(make("1f1b", 4, 32), costs).makespan);
  CHECK(best_warm_up(costs, {4, 4, 0.5, 4}, 32).empty());
}

TEST_CASE("micro-batches advance at the pace of the slowest stage", "[schedules]") {
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    Costs costs;
    for (std::uint32_t stage = 0; stage < 6; ++stage) {
      const auto words = philox({seed, stage, 0, 0}, {1, 2});
      costs.stages.push_back(
          {.forward = 0.5 + uniform(words[0]), .backward = 1 + 2 * uniform(words[1])});
      costs.link.latency = 0.5 * uniform(words[2]);
    }
    double slowest = 0;
    for (const auto& stage : costs.stages)
      slowest = std::max(slowest, stage.forward + stage.backward);
    const auto short_run = with_credits("1f1b-window", 200, best_warm_up(costs, {}, 200));
    const auto long_run = with_credits("1f1b-window", 400, best_warm_up(costs, {}, 400));
    const double distance =
        (play(long_run, costs).makespan - play(short_run, costs).makespan) / 200;
    CHECK(distance == Approx(slowest).epsilon(0.01));
  }
}
