#include "simulation/copies.h"

#include "catch.h"

using namespace troupe::simulation;
using namespace std::chrono_literals;

namespace {

/// Three nodes with one unit each, in two copies: the node's own, and one on the next node.
class ThreeNodes {
 public:
  ThreeNodes() { copies.keep_of_each(2); }

  /// Does a step on all nodes; returns whether its copies are kept.
  bool do_step(std::uint64_t epoch, std::int64_t step, Duration copying = {}) {
    bool kept = true;
    for (const Copies::Life life : plan) {
      const int unit = static_cast<int>(life) - 1;
      const std::map<int, std::uint64_t> weights{{unit, weight(unit, step)}};
      kept &= copies.keep({epoch, step, life, plan, weights, 10ms, copying});
    }
    copies.entered(step);
    return kept;
  }
  static std::uint64_t weight(int unit, std::int64_t step) {
    return static_cast<std::uint64_t>(10 * step + unit);
  }
  void pass(Duration time) {
    clock.after(time, [] {});
    clock.step();
  }
  std::int64_t newest() const { return copies.newest(3, 1'000); }

  const std::vector<Copies::Life> plan{1, 2, 3};
  Clock clock{1};
  Copies copies{clock};
};

}  // namespace

TEST_CASE_METHOD(ThreeNodes,
                 "a state in memory survives the loss of its node once its copy has arrived",
                 "[simulation]") {
  copies.begin(1, 0);
  CHECK(newest() == 0);
  REQUIRE(do_step(1, 1));
  CHECK(newest() == 1);
  CHECK(copies.newest(3, 0) == 0);
  SECTION("a node that is lost before takes it with it") {
    copies.lose(1);
    CHECK(!copies.find(0, 1));
    CHECK(copies.find(1, 1) == weight(1, 1));
    CHECK(newest() == 0);
    pass(10ms);
    CHECK(newest() == 0);
  }
  SECTION("and after that the next one has it, until it is lost as well") {
    pass(10ms);
    copies.lose(1);
    CHECK(copies.find(0, 1) == weight(0, 1));
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
  CHECK(copies.newest(3, 2) == 1);
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
  CHECK(!copies.find(0, 3));
  // Late calls for the previous attempt change nothing.
  CHECK(!do_step(1, 4));
  copies.begin(1, 0);
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
