#include "apps/events/event_text.h"

#include <string>

#include "catch.h"
#include "core/json.h"

using namespace troupe;

TEST_CASE("a straggler is told with what is known of it", "[apps]") {
  const auto told = [](const std::string& fields) {
    return apps::sentence(*parse_json(
        R"({"type":"node.straggler","run":"r","node":"beta","device":1,)" + fields + "}"));
  };
  const std::string numbers = R"("step":50,"since":48,"factor":2.13,"share":1,)";
  CHECK(told(numbers + R"("cause":"computing","than":"before")") ==
        "beta is slow: device 1 computes 2.1 times slower than before (since step 48; costs up to "
        "100 % of a step)");
  CHECK(told(numbers + R"("cause":"computing","than":"others")") ==
        "beta is slow: device 1 computes 2.1 times slower than other devices with the same stage "
        "(since step 48; costs up to 100 % of a step)");
  CHECK(told(R"("since":7,"factor":1234.2,"share":0.314,"cause":"link from alpha to beta")") ==
        "beta: the link from alpha to beta takes 1,234 times longer than before (since "
        "step 7; a round trip costs 31 % of a step more)");
  CHECK(told(R"("step":60,"cause":"computing","over":true,"why":"it is as fast as usual again")") ==
        "beta: device 1 is not slow any more: it is as fast as usual again");
}
