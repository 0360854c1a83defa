#include "schedules/search/search.h"

#include <limits>

#include "catch.h"
#include "schedules/check/check.h"
#include "schedules/generators/registry.h"
#include "schedules/text.h"
#include "tables.h"

using namespace troupe;
using namespace troupe::schedules;

namespace {

SearchRequest request(int devices, int micro_batches, double cap, const StageCosts& device = {},
                      double hop = 0) {
  SearchRequest request;
  request.devices = devices;
  request.micro_batches = micro_batches;
  for (const int chunks : {1, 2, 3, 4})
    request.partitions.push_back(uniform_costs(devices, chunks, device, {.latency = hop}));
  request.caps.assign(static_cast<std::size_t>(devices), cap);
  request.effort = 10'000'000;
  return request;
}

SearchResult found(const SearchRequest& request) {
  auto result = search(request);
  INFO((result ? "" : result.error().text));
  REQUIRE(result.ok());
  return *result;
}

/// Returns the shortest makespan of the named schedules within the caps, each evaluated alone.
double best_named(const SearchRequest& request) {
  double best = std::numeric_limits<double>::infinity();
  for (const auto& costs : request.partitions)
    for (const auto& named : named_schedules()) {
      const auto stages = static_cast<int>(costs.stages.size());
      const auto made =
          generate(named.name, {stages, request.micro_batches, stages / request.devices});
      if (named.mode != Mode::synchronous || !made || made->devices() != request.devices) continue;
      const auto simulation = play(*made, costs);
      if (made->routes.size() > 1 && request.weight_copies < 2) continue;
      if (simulation.largest_peak() > request.caps[0] * (1 + 1e-9)) continue;
      best = std::min(best, simulation.makespan);
    }
  return best;
}

}  // namespace

TEST_CASE("a search finds less idle time than any named schedule at equal memory", "[schedules]") {
  // Best named: zb-v with 5.9 % at the memory of 1f1b, v-half with 15.8 % at three quarters of it.
  const auto whole = found(request(4, 8, 4));
  CHECK(100 * whole.simulation.bubble < 4.1);
  CHECK(whole.best_named.name == "zb-v");
  CHECK(whole.best_named.makespan == 25.5);
  const auto less = found(request(4, 8, 3));
  CHECK(100 * less.simulation.bubble < 12.7);
  CHECK(less.best_named.name == "v-half");
  CHECK(less.simulation.largest_peak() <= 3);
}

TEST_CASE("two searches with the same request find the same schedule", "[schedules]") {
  const auto asked = request(4, 8, 3, {.backward_weight = 0.5}, 0.1);
  const auto first = found(asked), second = found(asked);
  CHECK(to_text(first.schedule) == to_text(second.schedule));
  CHECK(first.evaluations == second.evaluations);
  CHECK(to_table(first) == to_table(second));
}

TEST_CASE("a search finds a valid schedule under any costs", "[schedules]") {
  for (const double weight : {0.5, 1.0})
    for (const double hop : {0.0, 0.3})
      for (const double cap : {2.5, 4.0, 7.0})
        for (const auto objective : {Objective::makespan, Objective::period}) {
          INFO("W " << weight << ", hop " << hop << ", cap " << cap);
          auto asked = request(4, 9, cap, {.backward_weight = weight}, hop);
          asked.partitions[2].slowness = {1, 1, 1.5, 1};
          asked.objective = objective;
          asked.effort = 3'000'000;
          const auto result = found(asked);
          CHECK(check(result.schedule).empty());
          CHECK(is_schedule_name(result.schedule.name));
          CHECK(result.simulation.largest_peak() <= cap * (1 + 1e-9));
        }
}

TEST_CASE("a search is never worse than the best named schedule", "[schedules]") {
  for (const int devices : {1, 2, 3, 4})
    for (const int micro_batches : {1, 2, 5, 8})
      for (const double hop : {0.0, 0.5})
        for (const int copies : {1, 2}) {
          INFO(devices << " devices, " << micro_batches << " micro-batches, hop " << hop);
          auto asked = request(devices, micro_batches, devices, {.backward_weight = 0.75}, hop);
          asked.weight_copies = copies;
          asked.effort = 0;
          const auto result = found(asked);
          CHECK(result.simulation.makespan <= best_named(asked) * (1 + 1e-9));
          CHECK(result.best_named.makespan == Approx(best_named(asked)));
          CHECK(result.simulation.makespan >= result.bound.makespan * (1 - 1e-9));
          CHECK(result.simulation.largest_peak() <= devices * (1 + 1e-9));
        }
}

TEST_CASE("a search without a barrier minimizes the period", "[schedules]") {
  auto asked = request(4, 8, 7);
  asked.objective = Objective::period;
  const auto result = found(asked);
  CHECK(result.simulation.period == Approx(24));
  CHECK(result.why_stopped == "the best is within 0.1 % of the lower bound");
}

TEST_CASE("a search includes the cost of reductions and updates", "[schedules]") {
  auto asked = request(4, 8, 4, {.reduce = 6});
  const auto result = found(asked);
  // One stage per device hides nothing of its reduction; several hide all but the last stage's.
  CHECK(result.ranking[0].chunks > 1);
  CHECK(result.ranking[0].makespan < result.best_named.makespan + 1e-9);
  CHECK(result.ranking[0].makespan > result.simulation.makespan);
}

TEST_CASE("a search fuses the halves of a backward pass if that is shorter", "[schedules]") {
  auto asked = request(2, 8, 2, {.backward = 1.8});
  asked.partitions.resize(1);
  const auto result = found(asked);
  CHECK(check(result.schedule).empty());
  // All halves apart take 25 (zb-h1), all joined take 25.2 (1f1b).
  CHECK(result.best_named.makespan == Approx(25));
  CHECK(result.simulation.makespan < 24.5);
}

TEST_CASE("an interrupted search returns the best named schedule", "[schedules]") {
  auto asked = request(4, 8, 4);
  asked.interrupted = [] { return true; };
  const auto result = found(asked);
  CHECK(result.schedule.name == "zb-v");
  CHECK(result.why_stopped == "it was interrupted");
}

TEST_CASE("a failed search reports the closest schedule and its memory", "[schedules]") {
  const auto result = search(request(4, 8, 0.125));
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().text ==
        "no schedule for 4 devices and 8 micro-batches fits: the closest, seq, holds 1 on device "
        "0, whose cap is 0.125; raise the cap, recompute, or cut the micro-batches smaller");
}

TEST_CASE("an invalid search request is an error", "[schedules]") {
  const auto error = [](const SearchRequest& asked) {
    const auto result = search(asked);
    REQUIRE_FALSE(result.ok());
    return result.error().text;
  };
  CHECK(error({}) == "search: there is no partition to schedule");
  auto asked = request(4, 8, 4);
  asked.devices = 5;
  CHECK(error(asked) ==
        "search: a partition has 4 stages; wanted: as many, or a multiple of the devices, which "
        "are 5");
  asked = request(4, 8, 4);
  asked.caps.pop_back();
  CHECK(error(asked) == "search: there are 3 caps for 4 devices");
  asked = request(4, 8, -1);
  CHECK(error(asked) == "search: a cap is -1; wanted: more than 0");
  asked = request(4, 300'000, 4);
  CHECK(error(asked) ==
        "search: 4 stages and 300000 micro-batches are more than 1048576 forward passes; search "
        "with fewer micro-batches");
  asked = request(4, 0, 4);
  CHECK(error(asked) == "search: micro_batches is 0; wanted: 1 to 4194304");
}

TEST_CASE("a ranking prints as a table that ends with the lower bound", "[schedules]") {
  auto asked = request(2, 4, 2);
  asked.partitions.resize(1);
  asked.effort = 0;
  const auto table = to_table(found(asked));
  CHECK(
      table ==
      "schedule     chunks  makespan  period  peak\n"
      "zb-h1             1        13      13     2\n"
      "1f1b              1        15      15     2\n"
      "seq               1        24      24     1\n"
      "lower bound                13      12\n"
      "3 schedules timed; the search ended because the best is within 0.1 % of the lower bound\n");
}

TEST_CASE("eight devices idle at most 1.9 % at the memory of 1f1b and 6.9 % at 3/4 of it",
          "[.slow]") {
  auto asked = request(8, 32, 8);
  asked.effort = 100'000'000;
  CHECK(100 * found(asked).simulation.bubble <= 1.9);
  asked.caps.assign(8, 6);
  CHECK(100 * found(asked).simulation.bubble <= 6.9);
}
