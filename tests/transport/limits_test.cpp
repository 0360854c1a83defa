#include "catch.h"
#include "transport/control/backoff.h"
#include "transport/control/control_socket.h"
#include "transport/control/rate_limit.h"
#include "transport/control/strikes.h"

using namespace troupe::transport;
using namespace std::chrono_literals;

namespace {

using Verdict = Strikes::Verdict;

/// Adds several strikes at once. Returns the last verdict.
Verdict strike_often(Strikes& strikes, int times, TimePoint now) {
  auto verdict = Verdict::noted;
  for (int i = 0; i < times; ++i) verdict = strikes.strike("alpha", now);
  return verdict;
}

const TimePoint start{100h};

}  // namespace

TEST_CASE("ten strikes within a minute lead to quarantine", "[transport]") {
  Strikes strikes;
  CHECK(strike_often(strikes, 9, start) == Verdict::noted);
  CHECK_FALSE(strikes.quarantine_left("alpha", start));
  CHECK(strikes.strike("alpha", start + 59s) == Verdict::out);
  CHECK(*strikes.quarantine_left("alpha", start + 59s) == 60s);
  CHECK(*strikes.quarantine_left("alpha", start + 118s) == 1s);
  CHECK_FALSE(strikes.quarantine_left("alpha", start + 119s));
  CHECK_FALSE(strikes.quarantine_left("beta", start + 60s));
}

TEST_CASE("strikes are forgotten after a minute", "[transport]") {
  Strikes strikes;
  CHECK(strike_often(strikes, 9, start) == Verdict::noted);
  CHECK(strikes.strike("alpha", start + 60s) == Verdict::noted);
  CHECK(strike_often(strikes, 8, start + 61s) == Verdict::noted);
  CHECK(strikes.strike("alpha", start + 61s) == Verdict::out);
}

TEST_CASE("each quarantine is twice as long as the one before, up to an hour", "[transport]") {
  Strikes strikes;
  auto now = start;
  for (const auto minutes : {1min, 2min, 4min, 8min, 16min, 32min, 60min, 60min}) {
    CHECK(strike_often(strikes, 9, now) == Verdict::noted);
    CHECK(strikes.strike("alpha", now) == Verdict::out);
    CHECK(*strikes.quarantine_left("alpha", now) == minutes);
    // Further strikes do not extend the quarantine.
    CHECK(strikes.strike("alpha", now) == Verdict::out);
    CHECK(*strikes.quarantine_left("alpha", now) == minutes);
    now += minutes;
    CHECK_FALSE(strikes.quarantine_left("alpha", now));
  }
  // After an hour without a strike the history is forgotten.
  now += 1h;
  strike_often(strikes, 10, now);
  CHECK(*strikes.quarantine_left("alpha", now) == 1min);
}

TEST_CASE("invented subjects cannot fill the memory", "[transport]") {
  Strikes strikes({.subjects = 100});
  strike_often(strikes, 10, start);
  for (int i = 0; i < 10'000; ++i) strikes.strike("subject " + std::to_string(i), start + 1ms * i);
  CHECK(strikes.remembered() == 100);
}

TEST_CASE("a rate limit holds for each subject and for all together", "[transport]") {
  RateLimit limit({.per_second = 10, .at_once = 3}, {.per_second = 100, .at_once = 5});
  for (int i = 0; i < 3; ++i) CHECK(limit.admit("a", start));
  CHECK_FALSE(limit.admit("a", start));
  CHECK(limit.admit("b", start));
  CHECK(limit.admit("c", start));
  CHECK_FALSE(limit.admit("d", start));
  CHECK_FALSE(limit.admit("a", start + 99ms));
  CHECK(limit.admit("a", start + 101ms));
  CHECK_FALSE(limit.admit("a", start + 101ms));
  CHECK(limit.admit("d", start + 101ms));
}

TEST_CASE("invented addresses cannot fill the memory of a rate limit", "[transport]") {
  RateLimit limit({.per_second = 10, .at_once = 3}, {.per_second = 1e9, .at_once = 1e9}, 100);
  for (int i = 0; i < 10'000; ++i) CHECK(limit.admit(std::to_string(i), start));
  CHECK(limit.remembered() == 100);
  CHECK(limit.admit("late", start + 1s));
  CHECK(limit.remembered() == 1);
}

TEST_CASE("a back-off doubles up to its maximum and is randomized", "[transport]") {
  Backoff backoff({.first = 50ms, .longest = 2s}, 1);
  for (const auto most : {50ms, 100ms, 200ms, 400ms, 800ms, 1600ms, 2000ms, 2000ms}) {
    const auto time = backoff.next();
    CHECK(time >= most / 2);
    CHECK(time <= most);
  }
  backoff.reset();
  CHECK(backoff.next() <= 50ms);
  CHECK(Backoff({}, 1).next() != Backoff({}, 2).next());
}

TEST_CASE("a head with 20,000 descriptors admits 4,096 nodes that dial at once", "[transport]") {
  const auto limits = CrowdLimits::of(20'000);
  constexpr std::size_t nodes = 4096;
  CHECK(limits.strangers >= nodes);
  CHECK(limits.connections >= nodes);
  // One machine cannot take all places.
  CHECK(limits.of_address <= limits.strangers / 8);
  const ServerOptions options;
  RateLimit hellos(options.hellos_of_address, options.hellos);
  std::size_t admitted = 0;
  for (std::size_t node = 0; node < nodes; ++node)
    if (hellos.admit("host-" + std::to_string(node), start)) ++admitted;
  CHECK(admitted == nodes);
}
