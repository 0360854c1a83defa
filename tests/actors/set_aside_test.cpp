#include "actors/set_aside.h"

#include "catch.h"

using namespace troupe::actors;
using namespace std::chrono_literals;

namespace {

std::vector<NodeHere> nodes(const std::vector<std::string>& names) {
  std::vector<NodeHere> here;
  for (const auto& name : names) here.emplace_back().name = name;
  return here;
}

std::string chosen(const SetAside& aside, const std::vector<std::string>& from, int fewest,
                   SetAside::Clock::time_point now) {
  std::string names;
  for (const auto& node : aside.choose(nodes(from), fewest, now)) names += node.name + " ";
  return names;
}

}  // namespace

TEST_CASE("a node that failed is done without for a while, where others suffice", "[actors]") {
  const SetAside::Clock::time_point start(1h);
  SetAside aside;
  CHECK(chosen(aside, {"a", "b", "c"}, 1, start) == "a b c ");
  CHECK(aside.add("b", start) == 1min);
  CHECK(chosen(aside, {"a", "b", "c"}, 2, start) == "a c ");
  CHECK(chosen(aside, {"a", "b", "c"}, 3, start) == "a b c ");
  CHECK(chosen(aside, {"b"}, 0, start) == "b ");
  CHECK(chosen(aside, {"a", "b"}, 1, start + 59s) == "a ");
  CHECK(chosen(aside, {"a", "b"}, 1, start + 60s) == "a b ");
}

TEST_CASE("a node that fails again and again is done without for ever longer", "[actors]") {
  SetAside::Clock::time_point now(1h);
  SetAside aside;
  for (const auto time : {1min, 2min, 4min, 8min, 16min, 32min, 60min, 60min}) {
    CHECK(aside.add("b", now) == time);
    now += time;
  }
  // Who was good for an hour begins again with a minute.
  CHECK(aside.add("b", now + 1h) == 1min);
}
