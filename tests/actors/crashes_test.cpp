#include "actors/crashes.h"

#include <signal.h>

#include "catch.h"

using namespace troupe::actors;

namespace {

using What = Crashes::What;

Crash crash(std::int64_t step, const std::string& node, int signal) {
  return {step, node, signal, "its process was ended"};
}

}  // namespace

TEST_CASE("one death says nothing against a step", "[actors]") {
  Crashes crashes;
  CHECK(crashes.judge(crash(15, "alpha", SIGSEGV), 3).what == What::go_on);
  CHECK(crashes.judge(crash(16, "alpha", SIGSEGV), 3).what == What::go_on);
  CHECK(crashes.judge(crash(17, "beta", SIGKILL), 3).what == What::go_on);
}

TEST_CASE("a step that ends the processes of two nodes in the same way is given up", "[actors]") {
  Crashes crashes;
  crashes.judge(crash(15, "alpha", SIGSEGV), 3);
  const auto verdict = crashes.judge(crash(15, "beta", SIGSEGV), 3);
  CHECK(verdict.what == What::give_up);
  CHECK(verdict.is_fault);
  CHECK(verdict.reason ==
        "step 16 has ended 2 processes, and has not been done; the last one, on node beta, its "
        "process was ended");
}

TEST_CASE("a node whose processes alone end is done without", "[actors]") {
  Crashes crashes;
  crashes.judge(crash(15, "alpha", SIGBUS), 3);
  const auto verdict = crashes.judge(crash(15, "alpha", SIGBUS), 3);
  CHECK(verdict.what == What::without_node);
  CHECK(verdict.is_fault);
  CHECK(crashes.judge(crash(15, "beta", SIGBUS), 3).what == What::give_up);
}

TEST_CASE("who kills processes from outside may do so a few times at one step", "[actors]") {
  Crashes crashes;
  for (const auto* node : {"alpha", "beta", "alpha"})
    CHECK(crashes.judge(crash(15, node, SIGKILL), 3).what == What::go_on);
  CHECK_FALSE(crashes.are_more_than(3));
  const auto verdict = crashes.judge(crash(15, "beta", SIGKILL), 3);
  CHECK(verdict.what == What::give_up);
  CHECK_FALSE(verdict.is_fault);
  CHECK(crashes.are_more_than(3));
}
