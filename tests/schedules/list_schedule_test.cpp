#include "schedules/search/list_schedule.h"

#include <array>

#include "catch.h"
#include "schedules/check/check.h"
#include "schedules/generators/placement.h"
#include "schedules/simulate/simulate.h"
#include "tables.h"

using namespace troupe;
using namespace troupe::schedules;

namespace {

Schedule looped_pipeline(int devices, int chunks, int micro_batches) {
  const int stages = devices * chunks;
  return empty_schedule("list", {stages, micro_batches, chunks}, {looped(stages, devices)});
}

std::vector<double> caps(int devices, double cap) {
  return std::vector<double>(static_cast<std::size_t>(devices), cap);
}

}  // namespace

TEST_CASE("list scheduling takes I before F before W", "[schedules]") {
  const auto pipeline = looped_pipeline(2, 1, 3);
  const auto made =
      list_schedule(pipeline, unit_costs(pipeline), {.window = 2, .caps = caps(2, 2)});
  REQUIRE(made);
  CHECK(to_string(made->lanes[0]) == "0F0 0F1 0I0 0W0 0I1 0F2 0W1 0I2 0W2");
  CHECK(to_string(made->lanes[1]) == "1F0 1I0 1F1 1I1 1W0 1W1 1F2 1I2 1W2");
}

TEST_CASE("list schedules under a cap reach the bubbles of a reference", "[schedules]") {
  const auto bubble = [](const Route& route, int window, double cap) {
    const auto pipeline = empty_schedule("list", {16, 32, 2}, {route});
    const auto costs = unit_costs(pipeline);
    const auto made = list_schedule(pipeline, costs, {.window = window, .caps = caps(8, cap)});
    REQUIRE(made);
    const auto simulation = play(*made, costs);
    CHECK(check(*made).empty());
    CHECK(simulation.largest_peak() <= cap);
    return 100 * simulation.bubble;
  };
  CHECK(bubble(snaked(16, 8), 8, 5) == Approx(9.0).margin(0.051));
  CHECK(bubble(looped(16, 8), 8, 6) == Approx(6.8).margin(0.051));
}

TEST_CASE("list scheduling returns no schedule if the caps block every pass", "[schedules]") {
  const auto pipeline = looped_pipeline(2, 2, 4);
  // The cap fits one stage's activations, so stage 2 never starts on device 0.
  CHECK_FALSE(list_schedule(pipeline, unit_costs(pipeline), {.window = 2, .caps = caps(2, 0.5)}));
}

TEST_CASE("list scheduling spreads a lost device's micro-batches over its peers", "[schedules]") {
  // Four pipelines of four devices with 16 micro-batches each. Device 5 (stage 1 of the second) is
  // lost, so the other three devices of stage 1 take its micro-batches in turn.
  Schedule pipeline;
  pipeline.name = "rerouted";
  pipeline.stages = 4;
  pipeline.micro_batches = 64;
  pipeline.lanes.resize(16);
  pipeline.route_of.clear();
  int turn = 0;
  for (int m = 0; m < 12; ++m) {
    const auto first = static_cast<std::uint16_t>(4 * (m % 4));
    Route route = {first, static_cast<std::uint16_t>(first + 1),
                   static_cast<std::uint16_t>(first + 2), static_cast<std::uint16_t>(first + 3)};
    if (route[1] == 5) route[1] = std::array<std::uint16_t, 3>{1, 9, 13}[turn++ % 3];
    pipeline.route_of.push_back(static_cast<std::uint16_t>(pipeline.routes.size()));
    pipeline.routes.push_back(route);
  }
  const auto costs = uniform_costs(4, 1, {});
  const auto made = list_schedule(pipeline, costs, {.window = 7});
  REQUIRE(made);
  const auto simulation = play(*made, costs);
  CHECK(check(*made).empty());
  CHECK(made->lanes[5].empty());
  // Three devices do the work of four, which takes at least 64. The reference takes 67 to 68.
  CHECK(simulation.makespan >= 64);
  CHECK(simulation.makespan <= 68);
}
