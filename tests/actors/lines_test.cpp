#include "actors/lines.h"

#include <string>
#include <vector>

#include "catch.h"

using namespace troupe;
using namespace troupe::actors;
using namespace std::chrono_literals;

namespace {

using Processes = std::vector<std::vector<int>>;
using AllKept = std::vector<std::vector<KeptStep>>;

Processes keepers(const std::vector<int>& owners, const std::vector<std::string>& machines,
                  int copies) {
  return keepers_of(owners, machines, copies);
}

}  // namespace

TEST_CASE("copies of a state go to other machines first, and then to other processes", "[actors]") {
  const std::vector<std::string> one(4, "a");
  CHECK(keepers({0, 1, 3}, one, 2) == Processes{{0, 1}, {1, 2}, {3, 0}});
  CHECK(keepers({0, 2}, one, 3) == Processes{{0, 1, 2}, {2, 3, 0}});
  CHECK(keepers({0, 3}, {"a", "a", "b", "b"}, 2) == Processes{{0, 2}, {3, 0}});
  CHECK(keepers({0}, {"a", "a", "b", "b"}, 3) == Processes{{0, 2, 1}});
  CHECK(keepers({1}, {"a", "b", "a", "c"}, 3) == Processes{{1, 2, 3}});
  // No more than there are processes.
  CHECK(keepers({0, 1}, {"a", "b"}, 8) == Processes{{0, 1}, {1, 0}});
  CHECK(keepers({0}, {"a"}, 2) == Processes{{0}});
}

TEST_CASE("a run goes on from the newest step whose every state is in memory", "[actors]") {
  const std::vector<int> owners{0, 1, 2};
  const AllKept all{{{4, {0, 2}}, {6, {0, 2}}}, {{4, {1, 0}}, {6, {1, 0}}}, {{4, {2, 1}}}};
  CHECK(find_newest(all, owners, 9) == Found{6, {0, 1, 0}});
  // What is not committed is not there.
  CHECK(find_newest(all, owners, 5) == Found{4, {0, 1, 2}});
  CHECK(!find_newest(all, owners, 3));
  // Its own process gives it, or the next one round that has it.
  CHECK(find_newest(all, std::vector<int>{1, 2, 1}, 4) == Found{4, {1, 2, 2}});
  CHECK(find_newest(all, std::vector<int>{2, 0, 1}, 6) == Found{6, {0, 1, 0}});
  // Nobody has the third one of any step.
  CHECK(!find_newest(AllKept{{{4, {0, 1}}}, {{4, {1, 0}}, {6, {0, 1, 2}}}}, owners, 5));
  CHECK(!find_newest(AllKept{{}, {}}, std::vector<int>{0, 1}, 5));
}

TEST_CASE("a step is the line once all its copies are there and the ledger has it", "[actors]") {
  Lines lines(10, 2, 2);
  CHECK(lines.line() == 10);
  REQUIRE(lines.may_ask(0s));
  lines.ask(12, 0s);
  CHECK(!lines.may_ask(1h));
  lines.kept(12, 0s);
  lines.entered(12);
  CHECK(lines.line() == 10);
  lines.kept(11, 0s);  // Of nobody that was asked.
  CHECK(lines.line() == 10);
  lines.kept(12, 0s);
  CHECK(lines.line() == 12);

  lines.ask(14, 1s);
  lines.kept(14, 0s);
  lines.kept(14, 0s);
  lines.entered(13);
  CHECK(lines.line() == 12);
  CHECK(!lines.may_ask(1h));
  lines.entered(15);
  CHECK(lines.line() == 14);
}

TEST_CASE("a step that an optimizer has missed makes room for another one", "[actors]") {
  Lines lines(0, 2, 2);
  lines.ask(1, 0s);
  lines.kept(1, 1ms);
  CHECK(lines.missed(1));
  REQUIRE(lines.may_ask(0s));
  lines.ask(3, 0s);
  lines.kept(1, 1ms);
  CHECK(!lines.missed(1));
  CHECK(!lines.may_ask(1h));
  lines.kept(3, 0s);
  lines.kept(3, 0s);
  lines.entered(3);
  CHECK(lines.line() == 3);
}

TEST_CASE("being ready takes 2 % of the time at most", "[actors]") {
  Lines lines(0, 4, 2);
  lines.ask(1, 10s);
  lines.entered(1);
  for (int copy = 0; copy < 4; ++copy) lines.kept(1, 50ms);
  // 0.2 s by keepers, as much by others, on two nodes: fifty times that.
  CHECK(!lines.may_ask(19'999ms));
  CHECK(lines.may_ask(20s));
}

TEST_CASE("who keeps nothing asks for nothing", "[actors]") {
  CHECK(!Lines().may_ask(1h));
  CHECK(!Lines(5, 0, 3).may_ask(1h));
}
