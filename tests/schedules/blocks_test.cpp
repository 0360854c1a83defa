#include "schedules/formats/blocks.h"

#include <sstream>
#include <vector>

#include "catch.h"
#include "tables.h"

using namespace troupe;
using namespace troupe::schedules;

namespace {

std::string draw_blocks(const Schedule& schedule, std::size_t columns, bool has_colours = false) {
  const auto costs = unit_costs(schedule);
  const auto simulation = play(schedule, costs);
  return to_blocks(timeline_of(schedule, costs, simulation), summary(simulation), columns,
                   has_colours);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) rows.push_back(line);
  return rows;
}

int times_in(const std::string& text, const std::string& part) {
  int found = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

}  // namespace

TEST_CASE("blocks show what each device does, and when", "[schedules]") {
  const auto rows = lines_of(draw_blocks(make("1f1b", 2, 3), 80));
  REQUIRE(rows.size() == 9);
  CHECK(rows[0] == "1f1b");
  CHECK(rows[1].empty());
  CHECK(rows[2] == "          0         5         10");
  CHECK(rows[3] == "device 0  F0F1    B0--F2B1--  B2--");
  CHECK(rows[4] == "device 1    F0B0--F1B1--F2B2--");
  CHECK(rows[5].empty());
  CHECK(rows[6] == "F forward; B backward");
  CHECK(rows[7].starts_with("makespan 12, bubble 25 %"));
}

TEST_CASE("blocks that are too long continue in further rows", "[schedules]") {
  const auto text = draw_blocks(make("zb-h1", 4, 8), 50);
  const auto rows = lines_of(text);
  CHECK(times_in(text, "device 3") == 2);
  for (const auto& row : rows) CHECK(row.size() <= 50);
  for (const auto* pass : {"F0", "F7", "I0", "I7", "W0", "W7"}) CHECK(times_in(text, pass) == 4);
  // Eight times as long, and still no more than some rows for each device.
  CHECK(times_in(draw_blocks(make("zb-h1", 4, 64), 50), "device 3") <= 12);
}

TEST_CASE("blocks that overlap have rows of their own", "[schedules]") {
  const auto schedule = make("dualpipe", 4, 8);
  const auto text = draw_blocks(schedule, 100);
  const auto rows = lines_of(text);
  CHECK(times_in(text, "\n          ") > 4);
  CHECK(times_in(text, "F0") == times_in(text, "F7"));
}

TEST_CASE("colours are those of passes, and end with each row", "[schedules]") {
  const auto schedule = make("zb-v", 2, 4);
  const auto plain = draw_blocks(schedule, 80), coloured = draw_blocks(schedule, 200, true);
  CHECK(times_in(plain, "\x1b") == 0);
  for (const auto& row : lines_of(coloured))
    if (times_in(row, "\x1b[38") > 0) CHECK(row.ends_with("\x1b[m"));
  CHECK(times_in(coloured, "lighter: a device's other stages") == 1);
  CHECK(times_in(draw_blocks(make("1f1b", 2, 4), 80, true), "lighter") == 0);
}
