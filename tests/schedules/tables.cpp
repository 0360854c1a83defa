#include "tables.h"

#include <fstream>
#include <sstream>

#include "catch.h"
#include "schedules/generators/registry.h"
#include "schedules/text.h"

namespace troupe::schedules {

std::vector<std::vector<std::string>> read_table(const std::string& name) {
  std::ifstream file(TROUPE_TEST_DATA "/data/" + name);
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    auto& row = rows.emplace_back();
    for (std::string word; words >> word;) row.push_back(word);
  }
  return rows;
}

int chunks_of(const std::string& name) {
  if (name == "zb-v" || name == "v-half" || name == "v-min" || name == "dualpipev") return 2;
  const auto dash = name.rfind('-');
  if (name.starts_with("hanayo-w")) return 2 * std::stoi(name.substr(dash + 2));
  if (name.starts_with("interleaved-v") || name.starts_with("bfs-v"))
    return std::stoi(name.substr(dash + 2));
  return 1;
}

Schedule make(const std::string& name, int devices, int micro_batches) {
  const int chunks = chunks_of(name);
  auto made = generate(
      name, {.stages = chunks * devices, .micro_batches = micro_batches, .chunks = chunks});
  INFO(name << " " << devices << " " << micro_batches);
  REQUIRE(made.ok());
  return *made;
}

Schedule read(const std::string& text) {
  auto schedule = parse_schedule(text);
  INFO((schedule ? "" : schedule.error().text));
  REQUIRE(schedule.ok());
  return *schedule;
}

Simulation play(const Schedule& schedule, const Costs& costs) {
  auto simulation = simulate(schedule, costs);
  INFO((simulation ? "" : simulation.error().text));
  REQUIRE(simulation.ok());
  return *simulation;
}

Costs unit_costs(const Schedule& schedule, double hop) {
  return uniform_costs(schedule.devices(), schedule.stages / schedule.devices(), {},
                       {.latency = hop});
}

}  // namespace troupe::schedules
