#include "simulation/copies.h"

#include <algorithm>

#include "catch.h"

using namespace troupe::simulation;
using namespace std::chrono_literals;

namespace {

/// Three nodes with one part each, in two copies: the node's own, and one on the next node.
class ThreeNodes {
 public:
  /// Does a step on all nodes; returns whether its copies are kept.
  bool do_step(std::uint64_t attempt, std::int64_t step, Duration copying = {}) {
    const bool kept = copies.keep({attempt, step, plan, 10ms, copying});
    copies.entered(step);
    return kept;
  }
  void pass(Duration time) {
    clock.after(time, [] {});
    clock.step();
  }
  /// Returns whether some node has that part of the state after a step.
  bool has(int part, std::int64_t step) const {
    for (const Copies::Life life : plan)
      for (const auto& kept : copies.of(life))
        if (kept.step == step && std::ranges::count(kept.optimizers, part) > 0) return true;
    return false;
  }
  /// Returns the newest step of which all parts are there.
  std::int64_t newest() const {
    for (std::int64_t step = 100; step > 0; --step)
      if (has(0, step) && has(1, step) && has(2, step)) return step;
    return 0;
  }

  const std::vector<Copies::Life> plan{1, 2, 3};
  Clock clock;
  Copies copies{clock, 3, 2};
};

}  // namespace

TEST_CASE_METHOD(ThreeNodes,
                 "a state in memory survives the loss of its node once its copy has arrived",
                 "[simulation]") {
  copies.begin(1, 0);
  CHECK(newest() == 0);
  REQUIRE(do_step(1, 1));
  CHECK(newest() == 1);
  SECTION("a node that is lost before takes it with it") {
    copies.lose(1);
    CHECK_FALSE(has(0, 1));
    CHECK(has(1, 1));
    CHECK(newest() == 0);
    pass(10ms);
    CHECK(newest() == 0);
  }
  SECTION("and after that the next one has it, until it is lost as well") {
    pass(10ms);
    copies.lose(1);
    CHECK(has(0, 1));
    CHECK(newest() == 1);
    copies.lose(2);
    CHECK(newest() == 0);
  }
}

TEST_CASE_METHOD(ThreeNodes, "only one step is copied at a time and the previous copy is kept",
                 "[simulation]") {
  copies.begin(1, 0);
  REQUIRE(do_step(1, 1));
  CHECK(!do_step(1, 2));
  CHECK(newest() == 1);
  pass(10ms);
  REQUIRE(do_step(1, 3));
  CHECK(newest() == 3);
  CHECK(has(0, 1));
  copies.lose(1);
  CHECK(newest() == 1);
}

TEST_CASE_METHOD(ThreeNodes, "a new attempt drops states of other steps than its first",
                 "[simulation]") {
  copies.begin(1, 0);
  do_step(1, 1);
  pass(10ms);
  do_step(1, 3);
  copies.begin(2, 1);
  CHECK(newest() == 1);
  CHECK_FALSE(has(0, 3));
  // Late steps of the previous attempt change nothing.
  CHECK(!do_step(1, 4));
  CHECK(newest() == 1);
  REQUIRE(do_step(2, 2));
  CHECK(newest() == 2);
}

TEST_CASE_METHOD(ThreeNodes, "copying states takes at most 1 % of the nodes' time",
                 "[simulation]") {
  copies.begin(1, 0);
  REQUIRE(do_step(1, 1, 1ms));
  // Copying may take a hundredth of all nodes' time. With the senders' share that is 200 ms.
  pass(100ms);
  CHECK(!do_step(1, 2, 1ms));
  pass(99ms);
  CHECK(!do_step(1, 3, 1ms));
  pass(1ms);
  CHECK(do_step(1, 4, 1ms));
}
