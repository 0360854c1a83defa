#include "schedules/formats/csv.h"

#include "catch.h"
#include "schedules/generators/registry.h"
#include "schedules/operators.h"
#include "shapes.h"

using namespace troupe;
using namespace troupe::schedules;

namespace {

std::string csv_error(std::string_view text) {
  const auto schedule = parse_csv(text, "x");
  REQUIRE_FALSE(schedule.ok());
  return schedule.error().text;
}

}  // namespace

TEST_CASE("a schedule is written as a PyTorch table", "[schedules]") {
  CHECK(*to_csv(*generate("dualpipev", {4, 4, 2})) ==
        "0F0,0F1,0F2,3F0,3I0,3W0,3F1,(0F3;3B1)OVERLAP_F_B,(3F2;0B0)OVERLAP_F_B,3B2,"
        "(3F3;0B1)OVERLAP_F_B,3B3,0I2,0W2,0I3,0W3\n"
        "1F0,2F0,1F1,2F1,1F2,2B0,(2F2;1B0)OVERLAP_F_B,(1F3;2B1)OVERLAP_F_B,"
        "(2F3;1B1)OVERLAP_F_B,2B2,1B2,2I3,1I3,2W3,1W3\n");
  CHECK(*to_csv(with_updates(*generate("1f1b", {1, 1, 1}))) == "0F0,0B0,0REDUCE_GRAD\n");
}

TEST_CASE("an action without a PyTorch name is an error", "[schedules]") {
  const Schedule schedule = with_recompute(*generate("1f1b", {2, 1, 1}), {false, true});
  CHECK(to_csv(schedule).error().text == "device 1: torch's tables have no word for 1F0'");
}

TEST_CASE("a PyTorch table reads back with its routes", "[schedules]") {
  for_each_small_schedule(4, [](const Schedule& schedule) {
    if (find_schedule(schedule.name)->mode == Mode::asynchronous) return;
    const auto read = parse_csv(*to_csv(schedule), schedule.name);
    REQUIRE(read.ok());
    CHECK(read->lanes == schedule.lanes);
    CHECK(read->stages == schedule.stages);
    for (int m = 0; m < schedule.micro_batches; ++m) CHECK(read->route(m) == schedule.route(m));
  });
}

TEST_CASE("the reader accepts empty cells, transfers and sharding in a PyTorch table",
          "[schedules]") {
  const auto schedule = parse_csv(
      "0UNSHARD,0F0,0SEND_F0,0F1,0SEND_F1,,0RECV_B0,0B0,,0RECV_B1,0B1,0RESHARD,0REDUCE_GRAD\r\n"
      ",,1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,\"1F1\", 1B1 ,1SEND_B1\r\n",
      "torch");
  REQUIRE(schedule.ok());
  CHECK(to_string(schedule->lanes[0]) == "0G 0F0 0F1 0B0 0B1 0U 0A");
  CHECK(to_string(schedule->lanes[1]) == "1F0 1B0 1F1 1B1");
  CHECK(schedule->routes == std::vector<Route>{{0, 1}});
  CHECK(schedule->route_of == std::vector<std::uint16_t>{0});
  CHECK(schedule->micro_batches == 2);
}

TEST_CASE("the reader infers routes of both directions and their cycle from a table",
          "[schedules]") {
  const Schedule chimera = *generate("chimera", {4, 6, 1});
  CHECK(*parse_csv(*to_csv(chimera), "chimera") == chimera);
}

TEST_CASE("transfers without a matching pass or peer are errors", "[schedules]") {
  CHECK(csv_error("0F0,0SEND_F0,0B0\n1F0,1B0\n") == "1:2: no row receives what this sends");
  CHECK(csv_error("0F0,0B0\n1RECV_F0,1F0,1B0\n") == "2:1: no row sends what this receives");
  CHECK(csv_error("0SEND_F0,0F0,0B0\n1RECV_F0,1F0,1B0\n") ==
        "1:1: this sends what the row has not made before");
  CHECK(csv_error("0F0,0SEND_F0,0B0\n1F0,1RECV_F0,1B0\n") ==
        "2:2: this receives what the row does not use after");
  CHECK(csv_error("0F0,0SEND_F0,1RECV_F0,1F0\n") == "1:2: this row sends to itself");
  CHECK(csv_error("0F0,0SEND_F0,0SEND_F0\n") == "1:3: this transfer is listed twice");
}

TEST_CASE("a cell that holds no action is an error", "[schedules]") {
  CHECK(csv_error("0F0,0F\n").starts_with("1:2: found '0F', expected an action such as 0F1"));
  CHECK(csv_error("0F0,0F1x\n").starts_with("1:2: found '0F1x'"));
  CHECK(csv_error("0F0,-1F1\n").starts_with("1:2: found '-1F1'"));
  CHECK(csv_error("0F0,0REDUCE_GRAD1\n").starts_with("1:2: found '0REDUCE_GRAD1'"));
  CHECK(csv_error("0F0,(0F1;1B0)\n").starts_with("1:2: found '(0F1;1B0)'"));
  CHECK(csv_error("0F0,(0F1\n").starts_with("1:2: found '(0F1'"));
  CHECK(csv_error("(\n").starts_with("1:1: found '('"));
  CHECK(csv_error("(0F1)OVERLAP_F_B\n").starts_with("1:1: found '(0F1)OVERLAP_F_B'"));
  CHECK(csv_error("5000F0\n").starts_with("1:1: found '5000F0'"));
  CHECK(csv_error("") == "1:1: found no row, wanted one for each device");
  CHECK(csv_error("\n") == "1:1: found 0 actions for 0 stages and 0 micro-batches");
  CHECK(csv_error("0F0,0F2\n") == "1:1: found 2 actions for 1 stages and 3 micro-batches");
  CHECK(csv_error("0F0,0F2,0B0\n") == "1:1: no row has 0F1");
}
