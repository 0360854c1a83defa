#include "catch.h"
#include "golden.h"
#include "schedules/operators.h"
#include "schedules/simulate/simulate.h"
#include "tables.h"

using namespace troupe;
using namespace troupe::schedules;

TEST_CASE("named schedules have the times and memory of an independent simulator", "[schedules]") {
  const auto table = read_table("times.txt");
  REQUIRE(table.size() == 96);
  for (const auto& row : table) {
    const auto schedule = make(row[0], std::stoi(row[1]), std::stoi(row[2]));
    INFO(row[0] << ", " << row[1] << " devices, " << row[2] << " micro-batches");
    const auto simulation = play(schedule, unit_costs(schedule));
    CHECK(simulation.makespan == Approx(std::stod(row[3])).margin(0.051));
    if (row[4] != "-") CHECK(simulation.largest_span() == Approx(std::stod(row[4])));
    CHECK(100 * simulation.bubble == Approx(std::stod(row[5])).margin(0.051));
    CHECK(100 * simulation.steady_bubble == Approx(std::stod(row[6])).margin(0.051));
    CHECK(simulation.devices[0].peak == Approx(std::stod(row[7])).margin(0.0051));
    CHECK(simulation.largest_peak() == Approx(std::stod(row[8])).margin(0.0051));
  }
}

TEST_CASE("golden schedules have the times and memory printed with them", "[schedules]") {
  for (const auto& golden : golden_schedules()) {
    const auto schedule = read(golden.text);
    INFO(schedule.name);
    const auto simulation = play(schedule, unit_costs(schedule));
    CHECK(simulation.makespan == Approx(golden.makespan).margin(0.0006));
    REQUIRE(golden.peaks.size() == simulation.devices.size());
    for (std::size_t device = 0; device < golden.peaks.size(); ++device)
      CHECK(simulation.devices[device].peak == Approx(golden.peaks[device]).margin(0.0006));
  }
}

TEST_CASE("hops cost the same as in an independent simulator", "[schedules]") {
  const std::vector<double> hops = {0, 0.05, 0.1, 0.2, 0.5, 1};
  const auto table = read_table("hops.txt");
  REQUIRE(table.size() == 14);
  for (const auto& row : table) {
    const auto schedule = make(row[0], 8, 32);
    for (std::size_t hop = 0; hop < hops.size(); ++hop) {
      INFO(row[0] << " with hops of " << hops[hop]);
      const auto simulation = play(schedule, unit_costs(schedule, hops[hop]));
      CHECK(100 * simulation.steady_bubble == Approx(std::stod(row[hop + 1])).margin(0.051));
    }
  }
}

TEST_CASE("reductions expose as much time as in an independent simulator", "[schedules]") {
  const std::vector<double> parts = {0.05, 0.1, 0.2};
  const auto table = read_table("reductions.txt");
  REQUIRE(table.size() == 13);
  for (const auto& row : table) {
    const auto schedule = with_updates(make(row[0], 8, 32));
    auto costs = unit_costs(schedule);
    const double makespan = play(schedule, costs).makespan;
    const double load = 32 * 3;
    for (std::size_t part = 0; part < parts.size(); ++part) {
      const double reduction = parts[part] * load;
      for (auto& stage : costs.stages)
        stage.reduce = reduction * schedule.devices() / schedule.stages;
      INFO(row[0] << " with reductions of " << reduction);
      const double exposed = (play(schedule, costs).makespan - makespan) / reduction;
      CHECK(100 * exposed == Approx(std::stod(row[part + 1])).margin(0.51));
    }
  }
}
