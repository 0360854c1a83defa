#include "actors/decide/failures.h"

#include "catch.h"

using namespace troupe::actors;
using namespace std::chrono_literals;

namespace {

constexpr FailureLimits three_a_minute{.allowed = 3, .window = 60s};

}  // namespace

TEST_CASE("one failure leads to a retry", "[actors]") {
  const auto verdict = judge({{1s, "device 0: step 1, 0F0: x"}}, three_a_minute);
  CHECK(verdict.what == Verdict::What::try_again);
  CHECK(verdict.reason == "failure 1 of at most 3 within limits.strike_window");
}

TEST_CASE("two failures at the same place end the run", "[actors]") {
  const auto verdict = judge({{1s, "device 0: step 1, 0F0: x"},
                              {2s, "device 1: it was killed after step 0"},
                              {9h, "device 0: step 1, 0F0: x"}},
                             three_a_minute);
  CHECK(verdict.what == Verdict::What::fails_again);
  CHECK(verdict.reason == "the same failure occurred twice at the same place");
}

TEST_CASE("too many failures in a short time end the run", "[actors]") {
  std::vector<Failure> failures = {{1s, "a"}, {2s, "b"}, {3s, "c"}};
  CHECK(judge(failures, three_a_minute).what == Verdict::What::try_again);
  failures.push_back({61s, "d"});
  CHECK(judge(failures, three_a_minute).reason ==
        "failure 4 within limits.strike_window, and limits.strikes = 3");
  failures.back().when = 62s;  // The first failure is too old to count.
  CHECK(judge(failures, three_a_minute).what == Verdict::What::try_again);
}

TEST_CASE("failures on an excluded node do not count against the run", "[actors]") {
  std::vector<Failure> failures;
  for (int minute = 0; minute < 10; ++minute) {
    failures.push_back({minute * 1s, "device 0: x", "sick"});
    const auto verdict = judge(failures, three_a_minute);
    CHECK(verdict.what == Verdict::What::try_again);
    CHECK(verdict.reason == "node sick is not used for a while if other nodes suffice");
  }
  failures.push_back({10s, "device 0: y"});
  CHECK(judge(failures, three_a_minute).reason ==
        "failure 1 of at most 3 within limits.strike_window");
  failures.push_back({11s, "device 0: x", "alpha"});
  CHECK(judge(failures, three_a_minute).reason ==
        "the same failure occurred twice at the same place");
}

TEST_CASE("a run fails if a node fails again and too few others are left", "[actors]") {
  CHECK(judge({{1s, "device 0: x", "sick"}, {2s, "device 0: x"}}, three_a_minute).what ==
        Verdict::What::fails_again);
}
