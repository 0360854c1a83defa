#include "actors/standstill.h"

#include "catch.h"

using namespace troupe::actors;

TEST_CASE("a run in which an actor makes progress is not stalled", "[actors]") {
  CHECK_FALSE(find_standstill({}, {}));
  CHECK_FALSE(find_standstill({{.who = "device 0"}, {.who = "device 1"}}, {}));
  CHECK_FALSE(find_standstill({{.who = "device 0", .wait = waits("a"), .patiences = 60},
                               {.who = "device 1", .wait = computes("b"), .patiences = 5}},
                              {}));
}

TEST_CASE("a run has progress while one of those that have work is not stuck", "[actors]") {
  CHECK_FALSE(has_progress({}));
  CHECK_FALSE(has_progress({{.who = "idle"}}));
  CHECK_FALSE(has_progress({{.who = "stuck", .wait = computes("a"), .patiences = 1}}));
  CHECK_FALSE(has_progress({{.who = "silent", .wait = computes("a"), .silent = 2}}));
  CHECK(has_progress({{.who = "stuck", .wait = waits("a"), .patiences = 9},
                      {.who = "busy", .wait = computes("b"), .silent = 1}}));
}

TEST_CASE("an actor that waits for a disk may wait longer", "[actors]") {
  const auto saves = [](int patiences) {
    return find_standstill(
        {{.who = "supervisor", .wait = waits_for_disk("a"), .patiences = patiences}},
        {.usual = 6, .disk = 30});
  };
  CHECK_FALSE(saves(29));
  CHECK(saves(30));
}

TEST_CASE("a stall is blamed on the actor that computes", "[actors]") {
  const auto found = find_standstill({{.who = "device 0", .wait = waits("a"), .patiences = 60},
                                      {.who = "device 1", .wait = computes("b"), .patiences = 6},
                                      {.who = "device 2"}},
                                     {});
  REQUIRE(found);
  CHECK(found->who == "device 1");
  CHECK(found->what == "it still computes b, and no player has made progress for too long");
}

TEST_CASE("a stall is blamed on a silent actor before one that computes", "[actors]") {
  const auto found = find_standstill({{.who = "device 0", .wait = computes("a"), .patiences = 7},
                                      {.who = "device 1", .silent = 7}},
                                     {});
  REQUIRE(found);
  CHECK(found->who == "device 1");
  CHECK(found->what == "it no longer answers");
}

TEST_CASE("waits with equal texts count as the same wait", "[actors]") {
  Patience patience;
  CHECK(patience.look(waits("a")) == 0);
  CHECK(patience.look(waits("a")) == 1);
  CHECK(patience.look(waits("a")) == 2);
  CHECK(patience.look(waits("b")) == 0);
  CHECK(patience.look({}) == 0);
  CHECK(patience.look({}) == 0);
}
