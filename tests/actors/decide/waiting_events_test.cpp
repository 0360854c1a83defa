#include "actors/decide/waiting_events.h"

#include <string>
#include <vector>

#include "catch.h"

using namespace troupe::actors::decide;

namespace {

/// Returns the events that wait, in order.
std::vector<Event> waiting_in(WaitingEvents events) {
  std::vector<Event> all;
  for (; !events.is_empty(); events.pop_front()) all.push_back(events.front());
  return all;
}

}  // namespace

TEST_CASE("waiting events keep their order", "[actors]") {
  WaitingEvents events;
  events.add(NodeCame{1, "alpha"});
  events.add(PlayerFailed{1, 7, "broken"});
  events.add(NodeLost{1, "gone"});
  const auto all = waiting_in(events);
  REQUIRE(all.size() == 3);
  CHECK(std::get<NodeCame>(all[0]).life == 1);
  CHECK(std::get<PlayerFailed>(all[1]).why == "broken");
  CHECK(std::get<NodeLost>(all[2]).why == "gone");
}

TEST_CASE("a waiting event that comes again is left out", "[actors]") {
  WaitingEvents events;
  for (int i = 0; i < 3; ++i) {
    events.add(JournalRead{});
    events.add(SavesRead{{i}, i});
    events.add(NodeCame{1, "alpha"});
    events.add(PlanMade{4, {}, "none fits"});
    events.add(Prepared{1, 7, {}});
    events.add(PrepareFailed{1, 7, "no memory"});
    events.add(Loaded{7, 12});
    events.add(LoadFailed{1, 7, 12, LoadFailed::Cause::node, "no memory"});
    events.add(AttemptEnded{7});
    events.add(KeptBy{7, {std::vector<Life>{i}}});
    events.add(PairLost{1, 2, 7, "cut"});
    events.add(PairLost{2, 1, 7, "cut"});
    events.add(PlayerFailed{1, 7, "broken " + std::to_string(i)});
    events.add(Timeout{3});
  }
  const auto all = waiting_in(events);
  REQUIRE(all.size() == 13);
  // The newest one of these counts, and the first failure.
  CHECK(std::get<SavesRead>(all[1]).committed == 2);
  CHECK(std::get<KeptBy>(all[9]).keepers == std::vector<std::vector<Life>>{{2}});
  CHECK(std::get<PlayerFailed>(all[11]).why == "broken 0");
}

TEST_CASE("waiting events of other attempts, plans and timers are other events", "[actors]") {
  WaitingEvents events;
  events.add(Prepared{1, 7, {}});
  events.add(Prepared{1, 8, {}});
  events.add(Prepared{2, 8, {}});
  events.add(LoadFailed{0, 8, 12, LoadFailed::Cause::source, "damaged"});
  events.add(LoadFailed{0, 8, 4, LoadFailed::Cause::source, "damaged"});
  events.add(PlanMade{4, {}});
  events.add(PlanMade{5, {}});
  events.add(Timeout{3});
  events.add(Timeout{4});
  CHECK(events.size() == 9);
}

TEST_CASE("of a node that waiting events tell about, its last standing counts", "[actors]") {
  WaitingEvents events;
  for (const bool is : {false, true, false}) {
    events.add(NodeHeard{1, is});
    events.add(NodeCordoned{1, is});
    events.add(NodeHeard{2, !is});
  }
  const auto all = waiting_in(events);
  REQUIRE(all.size() == 3);
  CHECK(!std::get<NodeHeard>(all[0]).is_heard);
  CHECK(!std::get<NodeCordoned>(all[1]).is_cordoned);
  CHECK(std::get<NodeHeard>(all[2]).is_heard);
}

TEST_CASE("a waiting loss by silence does not hide the end of the process", "[actors]") {
  WaitingEvents events;
  events.add(NodeLost{.life = 1, .why = "silent", .is_silent = true});
  events.add(NodeLost{.life = 1, .why = "silent", .is_silent = true});
  events.add(NodeLost{.life = 1, .why = "killed", .signal = 9});
  events.add(NodeLost{.life = 1, .why = "killed", .signal = 9});
  const auto all = waiting_in(events);
  REQUIRE(all.size() == 2);
  CHECK(std::get<NodeLost>(all[1]).signal == 9);
}

TEST_CASE("a process that came and went while events waited is forgotten", "[actors]") {
  WaitingEvents events;
  events.add(NodeLost{1, "gone"});  // The machine knows this one.
  for (Life life = 2; life < 100; ++life) {
    events.add(NodeCame{life, "alpha"});
    events.add(NodeLost{.life = life, .why = "silent", .is_silent = true});
    events.add(NodeLost{life, "gone"});
    events.add(NodeHeard{life, false});
    events.add(NodeCordoned{life, true});
  }
  events.add(NodeCame{100, "alpha"});
  events.add(NodeCame{200, "beta"});
  const auto all = waiting_in(events);
  REQUIRE(all.size() == 3);
  CHECK(std::get<NodeLost>(all[0]).life == 1);
  CHECK(std::get<NodeCame>(all[1]).life == 100);
  CHECK(std::get<NodeCame>(all[2]).life == 200);
}

TEST_CASE("an event may wait again after it was answered", "[actors]") {
  WaitingEvents events;
  events.add(NodeCame{1, "alpha"});
  events.pop_front();
  CHECK(events.is_empty());
  events.add(NodeLost{1, "gone"});
  events.add(NodeCame{2, "alpha"});
  CHECK(events.size() == 2);
}
