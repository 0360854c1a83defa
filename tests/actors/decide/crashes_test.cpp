#include "actors/decide/crashes.h"

#include <signal.h>

#include "catch.h"

using namespace troupe::actors;
using namespace std::chrono_literals;

namespace {

using What = Crashes::What;

constexpr FailureLimits three_in_a_minute{.allowed = 3, .window = 60s};

Crash crash(std::int64_t step, const std::string& node, int signal) {
  return {0s, step, node, signal, "its process was ended"};
}
Crash killed(std::chrono::nanoseconds when, const std::string& node) {
  return {when, {}, node, SIGKILL, "its process was ended"};
}

}  // namespace

TEST_CASE("one death does not count against a step", "[actors]") {
  Crashes crashes;
  CHECK(crashes.judge(crash(15, "alpha", SIGSEGV), three_in_a_minute).what == What::go_on);
  CHECK(crashes.judge(crash(16, "alpha", SIGSEGV), three_in_a_minute).what == What::go_on);
  CHECK(crashes.judge(crash(17, "beta", SIGKILL), three_in_a_minute).what == What::go_on);
}

TEST_CASE("a run ends if one step ends the processes of two nodes in the same way", "[actors]") {
  Crashes crashes;
  crashes.judge(crash(15, "alpha", SIGSEGV), three_in_a_minute);
  const auto verdict = crashes.judge(crash(15, "beta", SIGSEGV), three_in_a_minute);
  CHECK(verdict.what == What::give_up);
  CHECK(verdict.is_fault);
  CHECK(verdict.reason ==
        "step 16 has ended 2 processes, and has not been done; the last one, on node beta, its "
        "process was ended");
}

TEST_CASE("a node is excluded if only its processes end", "[actors]") {
  Crashes crashes;
  crashes.judge(crash(15, "alpha", SIGBUS), three_in_a_minute);
  const auto verdict = crashes.judge(crash(15, "alpha", SIGBUS), three_in_a_minute);
  CHECK(verdict.what == What::without_node);
  CHECK(verdict.is_fault);
  CHECK(crashes.judge(crash(15, "beta", SIGBUS), three_in_a_minute).what == What::give_up);
}

TEST_CASE("processes that are killed from outside do not count against a step", "[actors]") {
  Crashes crashes;
  for (int death = 0; death < 10; ++death)
    for (const auto* node : {"alpha", "beta"}) {
      const auto verdict = crashes.judge(crash(15, node, SIGKILL), three_in_a_minute);
      CHECK(verdict.what == What::go_on);
      CHECK_FALSE(verdict.is_fault);
    }
}

TEST_CASE("a node is excluded if most ended processes are its own", "[actors]") {
  Crashes crashes;
  crashes.judge(killed(0s, "beta"), three_in_a_minute);
  for (int death = 1; death <= 3; ++death)
    CHECK(crashes.judge(killed(death * 1s, "alpha"), three_in_a_minute).what == What::go_on);
  const auto verdict = crashes.judge(killed(4s, "alpha"), three_in_a_minute);
  CHECK(verdict.what == What::without_node);
  CHECK(verdict.reason ==
        "4 processes have ended on node alpha, and 1 on all others (limits.strikes = 3); the last "
        "one its process was ended");
  // After its return the node may lose as many processes again.
  CHECK(crashes.judge(killed(5s, "alpha"), three_in_a_minute).what == What::go_on);
}

TEST_CASE("deaths that are spread over nodes or over time do not count against a node",
          "[actors]") {
  Crashes spread;
  for (int death = 0; death < 40; ++death)
    for (const auto* node : {"alpha", "beta"})
      CHECK(spread.judge(killed(death * 1s, node), three_in_a_minute).what == What::go_on);
  Crashes seldom;
  for (int death = 0; death < 40; ++death)
    CHECK(seldom.judge(killed(death * 21s, "alpha"), three_in_a_minute).what == What::go_on);
}
