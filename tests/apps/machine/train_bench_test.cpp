#include <sched.h>

#include "apps/program.h"
#include "catch.h"

using namespace troupe;
using namespace troupe::tests;

TEST_CASE("bench train has no rows for two cores if there is one", "[apps]") {
  const Workplace here;
  Launch launch;
  launch.arguments = {"bench", "train", "--alone", "--model", "gpt-tiny", "--rounds", "1"};
  launch.before_start = [] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(sched_getcpu()), &one);
    sched_setaffinity(0, sizeof one, &one);
  };
  const auto ended = troupe::tests::troupe(here, launch);
  CAPTURE(ended.out, ended.err);
  REQUIRE(ended.code == 0);
  CHECK(mentions(ended.out, "troupe fp32, 1 core"));
  CHECK(mentions(ended.out, "one core only: rows for two cores are left out\n"));
  CHECK(!mentions(ended.out, "2 threads"));
  CHECK(!mentions(ended.out, "2 replicas"));
  // A line comes for each run, before the table.
  CHECK(mentions(ended.err, "troupe fp32, 1 core"));
  // Nobody asked for PyTorch.
  CHECK(!mentions(ended.out, "PyTorch eager"));
}
