#include "schedules/partition/partition_replicated.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "catch.h"
#include "random_problems.h"

using namespace troupe;
using namespace troupe::schedules;
using namespace troupe::schedules::testing;

namespace {

/// Returns the time of the slowest stage; negative if the cuts are invalid or do not fit.
double judge(const ReplicatedProblem& problem, const std::vector<int>& cuts,
             const std::vector<int>& replicas) {
  const auto& pieces = problem.chain.pieces;
  double most = 0;
  int here_and_after = 0;
  for (int k = static_cast<int>(replicas.size()) - 1; k >= 0; --k) {
    here_and_after += replicas[k];
    const int in_flight =
        std::min(problem.micro_batches, (here_and_after + replicas[k] - 1) / replicas[k]);
    double work = 0;
    Bytes held = 0;
    Bytes reduced = 0;
    for (int i = cuts[k]; i < cuts[k + 1]; ++i) {
      if (i > cuts[k] && pieces[i].cut == Cut::required) return -1;
      if (i == cuts[k] && i > 0 && pieces[i].cut == Cut::forbidden) return -1;
      work += pieces[i].work.count();
      held += pieces[i].weights + pieces[i].fixed + in_flight * pieces[i].stash;
      reduced += pieces[i].reduced;
    }
    if (held > problem.device.memory) return -1;
    const double ring = 2.0 * (replicas[k] - 1) / replicas[k] *
                        occupied(problem.link, reduced).count() / problem.micro_batches;
    most = std::max({most, work / problem.device.speed / replicas[k], ring});
    if (k > 0) most = std::max(most, occupied(problem.link, pieces[cuts[k]].boundary).count());
  }
  return most;
}

/// Tries all cuts and replica counts; returns a negative number if none fits.
double best_by_trying_replicas(const ReplicatedProblem& problem) {
  const int count = static_cast<int>(problem.chain.pieces.size());
  double best = -1;
  std::vector<int> cuts{0};
  std::vector<int> replicas;
  const std::function<void(int)> go_on = [&](int devices) {
    if (cuts.back() == count) {
      const double t = judge(problem, cuts, replicas);
      if (t >= 0 && (best < 0 || t < best)) best = t;
      return;
    }
    for (int next = cuts.back() + 1; next <= count; ++next) {
      for (int m = 1; m <= devices; ++m) {
        cuts.push_back(next);
        replicas.push_back(m);
        go_on(devices - m);
        cuts.pop_back();
        replicas.pop_back();
      }
    }
  };
  go_on(problem.devices);
  return best;
}

}  // namespace

TEST_CASE("the stage with the most work gets the most replicas", "[schedules]") {
  ReplicatedProblem problem;
  for (double work : {6.0, 1.0, 1.0}) {
    Piece piece;
    piece.work = Seconds(work);
    problem.chain.pieces.push_back(piece);
  }
  problem.chain.pieces[1].cut = Cut::required;
  problem.devices = 4;
  const auto found = partition_replicated(problem);
  REQUIRE(found.ok());
  CHECK(found->cuts == std::vector<int>{0, 1, 3});
  CHECK(found->replicas == std::vector<int>{3, 1});
  CHECK(found->bottleneck == Seconds(2));
}

TEST_CASE("replica counts equal those of an exhaustive search", "[schedules]") {
  int fitting = 0;
  for (int seed = 0; seed < 500; ++seed) {
    Dice dice(static_cast<std::uint64_t>(seed));
    ReplicatedProblem problem;
    problem.chain = random_chain(dice, 7);
    problem.chain.ties.clear();
    for (Piece& piece : problem.chain.pieces) piece.reduced = dice.roll(0, 30);
    problem.devices = dice.roll(1, 6);
    problem.micro_batches = dice.roll(1, 8);
    problem.device.speed = dice.roll(1, 2);
    if (dice.one_in(2)) problem.device.memory = dice.roll(20, 160);
    if (dice.one_in(2))
      problem.link = {.latency = 0, .bandwidth = static_cast<double>(dice.roll(1, 8))};
    const double best = best_by_trying_replicas(problem);
    const auto found = partition_replicated(problem);
    INFO("seed " << seed);
    REQUIRE(found.ok() == (best >= 0));
    if (!found) continue;
    ++fitting;
    REQUIRE(judge(problem, found->cuts, found->replicas) == found->bottleneck.count());
    REQUIRE(found->bottleneck.count() == best);
    REQUIRE(std::accumulate(found->replicas.begin(), found->replicas.end(), 0) <= problem.devices);
  }
  CHECK(fitting > 250);
  CHECK(fitting < 480);
}

TEST_CASE("replicas on 16,384 devices come within a tenth of the ideal time", "[schedules]") {
  Dice dice(1);
  ReplicatedProblem problem;
  for (int i = 0; i < 300; ++i) {
    Piece piece;
    piece.work = Seconds(dice.roll(500, 1500) * 1e-6);
    piece.stash = dice.roll(1, 10);
    problem.chain.pieces.push_back(piece);
  }
  problem.devices = 16'384;
  problem.micro_batches = 32'768;
  const auto found = partition_replicated(problem);
  REQUIRE(found.ok());
  const double fair = 0.3 / 16'384;
  CHECK(found->bottleneck.count() < 1.1 * fair);
}

TEST_CASE("the number of devices hardly changes the work to plan replicas", "[schedules]") {
  const auto evaluations = [](int devices) {
    ReplicatedProblem problem;
    for (int i = 0; i < 24; ++i) {
      Piece piece;
      piece.work = Seconds((500 + i * 379 % 1001) * 1e-6);
      problem.chain.pieces.push_back(piece);
    }
    problem.devices = devices;
    problem.micro_batches = 1000;
    const auto found = partition_replicated(problem);
    REQUIRE(found.ok());
    return found->evaluations;
  };
  const auto few = evaluations(256);
  const auto many = evaluations(1 << 20);
  CAPTURE(few, many);
  // The search evaluates each of the 300 possible stages at least once.
  CHECK(few > 300);
  // 4096 times as many devices: binary searches over them take 20 rounds instead of 8.
  CHECK(many < 8 * few);
}

TEST_CASE("replicas of a model that does not fit are an error", "[schedules]") {
  ReplicatedProblem problem;
  problem.chain.pieces.resize(3);
  problem.chain.pieces[1].weights = 100;
  problem.device.memory = 99;
  problem.devices = 8;
  CHECK(partition_replicated(problem).error().text ==
        "the model does not fit on 8 devices of 99 B each, however it is cut and replicated; "
        "use more devices, smaller micro-batches or recomputation");
}
