// With exactness = "samples" gradients are summed during transport. A sum of two addends does not
// depend on their order, so two replicas still give the bits of a plain loop.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/nodes/placement.h"
#include "actors/nodes/traffic.h"
#include "actors/play/gradient_sum.h"
#include "catch.h"
#include "little_cluster.h"
#include "schedules/generators/registry.h"

using namespace troupe;
using namespace troupe::actors;

namespace {

Piece summed_piece(const std::string& model, const std::string& schedule, int stages, int replicas,
                   int chunks = 1) {
  auto piece = linked_piece(model, schedule, stages, replicas, chunks);
  piece.exactness = Exactness::samples;
  return piece;
}

struct SummedRun {
  Played played;
  std::uint64_t transfers = 0;
  std::string stuck;
};

SummedRun play_summed(const Piece& piece, const ClusterOrder& order,
                      const std::function<void(LittleCluster&)>& see = {}) {
  LittleCluster cluster(piece, order);
  if (see) see(cluster);
  SummedRun run;
  run.played = cluster.play();
  INFO(run.played.outcome.why);
  INFO(run.played.told("warn"));
  CHECK(run.played.outcome.how == Outcome::How::done);
  CHECK(run.played.bytes_left == 0);
  CHECK(cluster.world().misuses().empty());
  run.transfers = cluster.world().transfers();
  run.stuck = cluster.stuck();
  return run;
}

std::vector<std::vector<int>> sums_of(const Piece& piece) {
  LittleRun run(piece);
  ComputingThread executor(1);
  const auto spec = run.spec([&]() -> Executor& { return executor; });
  std::vector<int> processes(spec->executors.size());
  for (std::size_t i = 0; i < processes.size(); ++i) processes[i] = static_cast<int>(i);
  const int count = static_cast<int>(processes.size());
  return traffic_of(*spec, place(*spec, processes, count)).sums;
}

constexpr std::uint64_t summed_steps = 3;
constexpr std::chrono::milliseconds soon(1000), late(20'000);

}  // namespace

TEST_CASE("with exactness samples the devices of a stage may sum its gradients in transport",
          "[actors]") {
  auto piece = summed_piece("mlp", "1f1b", 2, 2);
  CHECK(sums_of(piece) == std::vector<std::vector<int>>{{0, 2}, {1, 3}});
  piece.exactness = Exactness::bits;
  CHECK(sums_of(piece).empty());
  CHECK(sums_of(summed_piece("mlp", "1f1b", 2, 1)) == std::vector<std::vector<int>>{{}, {}});
  // The two directions make two holders of each stage.
  CHECK(sums_of(summed_piece("mlp", "chimera", 2, 1)) ==
        std::vector<std::vector<int>>{{0, 1}, {1, 0}});
  // Remedies for late gradients need each gradient.
  auto asynchronous = summed_piece("mlp", "pipedream", 2, 2);
  asynchronous.shape.flush_steps = 2;
  CHECK(sums_of(asynchronous).empty());
}

TEST_CASE("gradients summed in transport are close to those of the exact exchange", "[actors]") {
  auto piece = summed_piece("mlp", "gpipe", 1, 4);
  const auto summed = play_summed(piece, {.nodes = 4});
  // Each pair exchanges a test and the first weights, then weights in each step. The sum is tested
  // once, then used in each step.
  constexpr std::uint64_t pairs = 4 * 3;
  CHECK(summed.transfers == pairs * (1 + 1 + summed_steps) + 1 + summed_steps);

  piece.exactness = Exactness::bits;
  const auto exact = play_summed(piece, {.nodes = 4});
  CHECK(exact.played.weights == bits_of_plain_loop(piece));
  const auto &some = summed.played.numbers, &others = exact.played.numbers;
  REQUIRE(some.size() == others.size());
  float most = 0;
  for (std::size_t i = 0; i < some.size(); ++i)
    most = std::max(most, std::abs(some[i] - others[i]));
  CHECK(most < 1e-4F);
}

TEST_CASE("sums over two holders give plain-loop bits with every synchronous schedule",
          "[actors]") {
  int count = 0;
  for (const auto& schedule : schedules::named_schedules()) {
    if (schedule.mode != schedules::Mode::synchronous) continue;
    const auto piece = summed_piece(count % 2 ? "llama" : "gpt2", std::string(schedule.name), 2, 2);
    if (!Rounds::make(piece.shape)) continue;
    CAPTURE(schedule.name);
    const auto run = play_summed(piece, {.nodes = 2});
    CHECK(run.played.weights == bits_of_plain_loop(piece));
    ++count;
  }
  CHECK(count > 5);
}

TEST_CASE("sums over two holders give plain-loop bits with statistics, cuts and a server",
          "[actors]") {
  const auto check = [](const Piece& piece) {
    const auto run = play_summed(piece, {.nodes = 2});
    CHECK(run.played.weights == bits_of_plain_loop(piece));
    return run.transfers;
  };
  check(summed_piece("resnet", "gpipe", 1, 2));
  const auto all_to_all = check(summed_piece("wide", "gpipe", 1, 2));
  auto served = summed_piece("wide", "gpipe", 1, 2);
  served.exchange = Exchange::server;
  // Only the server sends weights. Both edges and the sum are tested.
  CHECK(check(served) == all_to_all - (1 + summed_steps));
}

TEST_CASE("an overflow in an fp16 sum makes all replicas skip the step", "[actors]") {
  const auto piece = summed_piece("mlp", "1f1b", 2, 2).in_fp16(8);
  const auto run = play_summed(piece, {.nodes = 2});
  CHECK(run.played.weights == bits_of_plain_loop(piece));
  CHECK(run.played.outcome.skipped_steps > 0);
  CHECK(run.played.outcome.skipped_steps < 8);
}

TEST_CASE("devices without links, or in one process, exchange gradients without sums", "[actors]") {
  const auto piece = summed_piece("mlp", "gpipe", 1, 4);
  for (const ClusterOrder& order :
       {ClusterOrder{.nodes = 4, .without_links = 2},
        ClusterOrder{.nodes = 4, .of_another_kind = 1}, ClusterOrder{.nodes = 3},
        ClusterOrder{.nodes = 4, .carriers = Carriers::tcp}}) {
    const auto run = play_summed(piece, order);
    CHECK(run.played.weights == bits_of_plain_loop(piece));
  }
}

TEST_CASE("a node that dies or fails during steps with sums costs an attempt and changes no bit",
          "[actors]") {
  auto piece = summed_piece("mlp", "1f1b", 2, 2);
  LittleCluster* here = nullptr;
  const bool dies = GENERATE(true, false);
  piece.layer_fault =
      LayerFault{.unit = 2,
                 .forward =
                     [&here, dies, done = std::make_shared<std::atomic<bool>>(false)](
                         const models::Pass& pass, Tensor&) {
                       if (pass.key.step != 1 || pass.key.sample < 4 || done->exchange(true))
                         return;
                       if (dies)
                         here->kill(2);
                       else
                         here->fail_player(0);
                     },
                 .backward = {}};
  // Before and after the failure the replicas are on separate nodes.
  const auto run =
      play_summed(piece, {.nodes = 3}, [&](LittleCluster& cluster) { here = &cluster; });
  CHECK(run.played.weights == bits_of_plain_loop(piece));
  CHECK(run.stuck.empty());
  const auto told = run.played.told("warn");
  INFO(told);
  CHECK((dies ? tells_of_death(told) : told.find("the test has said so") != std::string::npos));
}

TEST_CASE("a sum that takes too long ends the attempt, and the next one gives the same bits",
          "[actors]") {
  auto piece = summed_piece("mlp", "gpipe", 1, 2);
  LittleCluster* here = nullptr;
  piece.layer_fault = LayerFault{.unit = 2,
                                 .forward =
                                     [&here, done = std::make_shared<std::atomic<bool>>(false)](
                                         const models::Pass& pass, Tensor&) {
                                       if (pass.key.step == 1 && !done->exchange(true))
                                         here->freeze_devices(1);
                                     },
                                 .backward = {}};
  const auto run = play_summed(piece, {.nodes = 2, .patience = {late, soon, late, late}},
                               [&](LittleCluster& cluster) { here = &cluster; });
  CHECK(run.played.weights == bits_of_plain_loop(piece));
  const auto told = run.played.told("warn");
  INFO(told);
  CHECK(told.find("within 1000 ms") != std::string::npos);
}
