#include "schedules/formats/json_form.h"

#include "catch.h"
#include "core/json.h"
#include "schedules/generators/registry.h"
#include "schedules/operators.h"
#include "shapes.h"

using namespace troupe;
using namespace troupe::schedules;

namespace {

std::string error(const std::string& json) {
  const auto value = parse_json(json);
  REQUIRE(value.ok());
  const auto schedule = schedule_from(*value);
  REQUIRE_FALSE(schedule.ok());
  return schedule.error().text;
}

std::string with_lanes(const std::string& lanes) {
  return R"({"sched":1,"name":"x","devices":1,"stages":1,"micro_batches":1,"routes":[[0]],)"
         R"("route_of":[0],"lanes":)" +
         lanes + "}";
}

}  // namespace

TEST_CASE("the JSON of a schedule has the fields of its text", "[schedules]") {
  CHECK(to_json(to_value(*generate("dualpipe", {2, 4, 1}))) ==
        R"~({"sched":1,"name":"dualpipe","devices":2,"stages":2,"micro_batches":4,)~"
        R"~("routes":[[0,1],[1,0]],"route_of":[0,1],"lanes":[)~"
        R"~(["0F0","1F1","0F2","1B1","(1F3+0B0)","1B3","0I2","0W2"],)~"
        R"~(["0F1","1F0","0F3","1B0","(1F2+0B1)","1B2","0I3","0W3"]]})~");
}

TEST_CASE("every schedule reads back equal from its JSON", "[schedules]") {
  for_each_small_schedule(4, [](const Schedule& schedule) {
    const Schedule whole = with_updates(schedule);
    const auto value = parse_json(to_json_lines(to_value(whole)));
    REQUIRE(value.ok());
    const auto read = schedule_from(*value);
    REQUIRE(read.ok());
    CHECK(*read == whole);
  });
}

TEST_CASE("an error in the JSON of a schedule names its line and column", "[schedules]") {
  CHECK(error("[]") == "1:1: found a list, expected a table");
  CHECK(error("{\"sched\":1}") == "1:1: a schedule needs the key 'name'");
  CHECK(error("{\"shced\":1}") == "1:2: a schedule has no key 'shced'");
  CHECK(error("{\"sched\":2}") == "1:10: expected a whole number from 1 to 1, found 2");
  CHECK(error(with_lanes("[[\"0F0\",7]]")) ==
        "1:110: found an integer, expected an action such as \"0F1\"");
  CHECK(error(with_lanes("[[\"0F0\",\"0F1\"]]")) ==
        "1:110: within the text, 1:3: found '1', expected a micro-batch, 0");
  CHECK(error(with_lanes("[[\"{0F0}*9999999:0\"]]")) ==
        "1:104: found \"{0F0}*9999999:0\", expected one action or group");
  CHECK(error(with_lanes("[[\"0F0 0B0\"]]")) ==
        "1:104: found \"0F0 0B0\", expected one action or group");
  CHECK(error(with_lanes("[[],[]]")) == "1:102: found 2 lanes, wanted one for each of 1 devices");
  CHECK(error(with_lanes("7")) == "1:102: found an integer, expected a list of lanes");
}
