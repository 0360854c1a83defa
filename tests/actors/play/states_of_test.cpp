#include "actors/play/states_of.h"

#include <limits>
#include <optional>
#include <string>

#include "catch.h"
#include "core/json.h"

using namespace troupe;
using namespace troupe::actors;

namespace {

StatesOf states_with(const std::string& train, const std::string& rest = "") {
  const auto config = parse_json("{\"name\": \"run\", \"train\": " + train + rest + "}");
  REQUIRE(config);
  return StatesOf(*config);
}

}  // namespace

TEST_CASE("configurations that leave out other steps have equal states before those", "[actors]") {
  const auto none = states_with("{\"steps\": 9}");
  const auto third = states_with("{\"steps\": 9, \"skip_steps\": [3]}");
  const auto both = states_with("{\"steps\": 9, \"skip_steps\": [3, 7]}");
  constexpr auto all = std::numeric_limits<std::int64_t>::max();
  CHECK(last_equal_step(none, none) == all);
  CHECK(last_equal_step(both, both) == all);
  CHECK(last_equal_step(none, third) == 2);
  CHECK(last_equal_step(third, none) == 2);
  CHECK(last_equal_step(third, both) == 6);
  CHECK(last_equal_step(none, states_with("{\"steps\": 9, \"skip_steps\": [1]}")) == 0);
}

TEST_CASE("other configurations have no equal state", "[actors]") {
  const auto one = states_with("{\"steps\": 9}");
  CHECK(last_equal_step(one, states_with("{\"steps\": 10}")) == std::nullopt);
  CHECK(last_equal_step(one, states_with("{\"steps\": 9}", ", \"seed\": 2")) == std::nullopt);
  CHECK(last_equal_step(StatesOf(), one) == std::nullopt);
}
