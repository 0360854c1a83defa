#include "schedules/partition/partition_order.h"

#include <algorithm>
#include <numeric>

#include "catch.h"
#include "random_problems.h"

using namespace troupe;
using namespace troupe::schedules;
using namespace troupe::schedules::testing;

namespace {

OrderProblem problem_of(const std::vector<double>& work, const std::vector<Capacity>& devices,
                        int stages) {
  OrderProblem problem;
  for (double w : work) {
    Piece piece;
    piece.work = Seconds(w);
    problem.problem.chain.pieces.push_back(piece);
  }
  problem.problem.devices = devices;
  for (int d = 0; d < static_cast<int>(devices.size()); ++d) problem.groups.push_back({d});
  problem.problem.seats.resize(static_cast<std::size_t>(stages));
  return problem;
}

}  // namespace

TEST_CASE("the unit with the most work goes to the fastest device", "[schedules]") {
  const auto found =
      partition_any_order(problem_of({1, 1, 8}, {{.speed = 4}, {.speed = 1}, {.speed = 1}}, 3));
  REQUIRE(found.ok());
  CHECK(found->devices.back() == 0);
  CHECK(found->partition.bottleneck == Seconds(2));
}

TEST_CASE("the order search leaves out the slowest devices", "[schedules]") {
  const auto found =
      partition_any_order(problem_of({1, 1}, {{.speed = 1}, {.speed = 2}, {.speed = 3}}, 2));
  REQUIRE(found.ok());
  CHECK(found->partition.bottleneck == Seconds(0.5));
  CHECK(std::count(found->devices.begin(), found->devices.end(), 0) == 0);
}

TEST_CASE("the device with the most memory comes first if early stages hold the most",
          "[schedules]") {
  auto problem = problem_of({1, 1}, {{.speed = 1, .memory = 10}, {.speed = 1, .memory = 30}}, 2);
  for (Piece& piece : problem.problem.chain.pieces) piece.stash = 10;
  problem.problem.seats[0].in_flight = 3;
  const auto found = partition_any_order(problem);
  REQUIRE(found.ok());
  CHECK(found->devices == std::vector<int>{1, 0});
}

TEST_CASE("devices of a node stay adjacent", "[schedules]") {
  auto problem = problem_of({1, 1, 1, 1}, std::vector<Capacity>(4), 4);
  problem.groups = {{0, 2}, {1, 3}};
  const auto found = partition_any_order(problem);
  REQUIRE(found.ok());
  CHECK(found->devices == std::vector<int>{0, 2, 1, 3});
}

TEST_CASE("the order search finds the best order in at least 90 % of cases", "[schedules]") {
  int fitting = 0;
  int best_ones = 0;
  for (int seed = 0; seed < 200; ++seed) {
    Dice dice(static_cast<std::uint64_t>(seed));
    OrderProblem problem;
    problem.problem = random_straight(dice, 10, 4);
    for (int d = 0; d < static_cast<int>(problem.problem.devices.size()); ++d)
      problem.groups.push_back({d});
    problem.outside = problem.problem.seats[0].next;

    double best = -1;
    std::vector<int> order(problem.groups.size());
    std::iota(order.begin(), order.end(), 0);
    do {
      PartitionProblem fixed = problem.problem;
      for (std::size_t k = 0; k < order.size(); ++k) {
        fixed.seats[k].device = order[k];
        fixed.seats[k].next = problem.outside;
      }
      const double t = best_by_trying(fixed);
      if (t >= 0 && (best < 0 || t < best)) best = t;
    } while (std::next_permutation(order.begin(), order.end()));

    const auto found = partition_any_order(problem);
    if (best < 0) REQUIRE_FALSE(found.ok());
    if (!found) continue;
    ++fitting;
    REQUIRE(found->partition.bottleneck.count() >= best);
    best_ones += found->partition.bottleneck.count() == best;
  }
  CHECK(fitting > 80);
  CHECK(best_ones >= 0.9 * fitting);
}

TEST_CASE("fewer devices than stages are an error", "[schedules]") {
  CHECK(partition_any_order(problem_of({1, 1, 1}, std::vector<Capacity>(2), 3)).error().text ==
        "3 stages need as many devices, and there are 2");
}
