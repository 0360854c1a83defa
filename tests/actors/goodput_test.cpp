#include "actors/lead/goodput.h"

#include "catch.h"

using namespace troupe::actors;
using namespace std::chrono_literals;

namespace {

constexpr caf_shim::TimePoint at_first{1h};

}  // namespace

TEST_CASE("where nothing is lost all time is useful", "[actors]") {
  Goodput goodput;
  CHECK(goodput.at(at_first) == 1);
  goodput.begun(0, at_first);
  for (int step = 0; step < 10; ++step) goodput.done(1s);
  CHECK(goodput.at(at_first + 10s) == 1);
  // An evaluation, or a save that is waited for.
  CHECK(goodput.at(at_first + 12500ms) == 0.8);
}

TEST_CASE("steps that are done again count once, and recoveries do not count", "[actors]") {
  Goodput goodput;
  goodput.begun(5, at_first);
  for (int step = 5; step < 10; ++step) goodput.done(1s);
  // A second later the run goes on after step 8: two of five steps are lost.
  goodput.begun(8, at_first + 6s);
  CHECK(goodput.at(at_first + 6s) == 0.5);
  for (int step = 8; step < 10; ++step) goodput.done(2s);
  CHECK(goodput.at(at_first + 10s) == 0.7);
}

TEST_CASE("what is saved is not lost any more", "[actors]") {
  Goodput goodput;
  goodput.begun(0, at_first);
  for (int step = 0; step < 4; ++step) goodput.done(1s);
  goodput.settled(3);
  goodput.begun(3, at_first + 4s);
  CHECK(goodput.at(at_first + 4s) == 0.75);
  goodput.settled(3);
  goodput.done(1s);
  goodput.begun(3, at_first + 6s);
  CHECK(goodput.at(at_first + 6s) == 0.5);
}

TEST_CASE("a run that is paused loses no time", "[actors]") {
  Goodput goodput;
  goodput.paused(1h);
  goodput.begun(0, at_first);
  goodput.done(1s);
  goodput.paused(10s);
  CHECK(goodput.at(at_first + 11s) == 1);
}
