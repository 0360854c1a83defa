#include "apps/client/scenario.h"

#include "catch.h"

using namespace troupe;
using namespace troupe::apps;

namespace {

Value table(Value::Map entries) { return Value(std::move(entries)); }

bool matches(const Value& wanted, const Value& found) {
  return Pattern(table({{"field", wanted, {}}})).matches(table({{"field", found, {}}}));
}

std::string complaint(const std::string& text) {
  const auto parsed = parse_scenario("x.toml", text);
  return parsed ? "" : parsed.error().text;
}

}  // namespace

TEST_CASE("a field equals the given value or satisfies the given comparison", "[apps]") {
  CHECK(matches(45, 45));
  CHECK(matches(45, 45.0));
  CHECK(!matches(45, 46));
  CHECK(matches("done", "done"));
  CHECK(!matches("done", "failed"));
  CHECK(matches(">= 45", 45));
  CHECK(!matches("> 45", 45));
  CHECK(matches("<2.5", 2.4));
  CHECK(!matches("<= 2.5", 2.6));
  CHECK(!matches("> 1", "two"));
  CHECK(matches("!= done", "failed"));
  CHECK(!matches("!= done", "done"));
  CHECK(matches("~ newest", "from the newest checkpoint"));
  CHECK(!matches("~ newest", "from the oldest"));
  CHECK(!Pattern(table({{"absent", 1, {}}})).matches(table({{"field", 1, {}}})));
}

TEST_CASE("a scenario is parsed with its limits", "[apps]") {
  const auto scenario = parse_scenario("x.toml", R"([cluster]
nodes = 3

[[act]]
submit = "../quickstart.toml"
set = ["name=calm"]

[[act]]
when = { type = "step", step = ">= 5" }
send = { type = "chaos", what = "kill", target = "node-1" }
expect = [{ type = "node.lost" }, { type = "warn" }]
within = "10s"
same_weights = ["a", "b"]
)");
  REQUIRE(scenario.ok());
  CHECK(scenario->nodes == 3);
  REQUIRE(scenario->acts.size() == 2);
  CHECK(scenario->acts[0].set == std::vector<std::string>{"name=calm"});
  CHECK(scenario->acts[0].within == std::chrono::seconds(60));
  const auto& act = scenario->acts[1];
  CHECK(act.line == 8);
  CHECK(act.within == std::chrono::seconds(10));
  CHECK(act.when->text() == "step with step = >= 5");
  CHECK(act.expect.size() == 2);
  CHECK(*act.send.find("what")->text() == "kill");
}

TEST_CASE("an error in a scenario names its place", "[apps]") {
  CHECK(complaint("") == "x.toml: has no [[act]]");
  CHECK(complaint("[[act]]\nwhen = \"now\"\n").starts_with("x.toml:2:1: when: wanted a table"));
  CHECK(complaint("[[act]]\nsend = { run = \"x\" }\n").find("with its type") != std::string::npos);
  CHECK(complaint("[[act]]\nwithin = 5\n").starts_with("x.toml:2:1: within: wanted a duration"));
  CHECK(complaint("[[act]]\nexpext = 5\n").starts_with("x.toml:2:1: expext: is no key"));
  CHECK(complaint("[[act]]\nsame_weights = [\"one\"]\n").find("two runs") != std::string::npos);
  CHECK(complaint("[cluster]\nnodes = 0\n[[act]]\n").find("from 1 to 64") != std::string::npos);
  CHECK(complaint("[actor]\n").find("there are [cluster] and [[act]]") != std::string::npos);
  CHECK(complaint("act = 1 =\n").starts_with("x.toml:1:"));
}
