#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/nodes/placement.h"
#include "actors/nodes/traffic.h"
#include "catch.h"
#include "little_cluster.h"
#include "schedules/generators/registry.h"

using namespace troupe;
using namespace troupe::actors;

namespace {

void check_bits(const Played& played, const Piece& piece) {
  INFO(played.outcome.why);
  INFO(played.told("warn"));
  CHECK(played.outcome.how == Outcome::How::done);
  CHECK(played.weights == bits_of_plain_loop(piece));
  CHECK(played.bytes_left == 0);
}

/// Returns a fault that calls `happens` once in the middle of a step, when a unit has passed a
/// micro-batch forward.
LayerFault in_the_midst(std::function<void()> happens) {
  return {.unit = 2,
          .forward =
              [happens = std::move(happens), done = std::make_shared<std::atomic<bool>>(false)](
                  const models::Pass& pass, Tensor&) {
                if (pass.key.step == 1 && pass.key.sample >= 4 && !done->exchange(true)) happens();
              },
          .backward = {}};
}

constexpr std::chrono::milliseconds short_wait(1000), long_wait(20'000);

}  // namespace

TEST_CASE("tensors travel between adjacent stages and among the devices of a stage", "[actors]") {
  LittleRun run(linked_piece("mlp", "1f1b", 2, 2));
  ComputingThread executor(1);
  const auto spec = run.spec([&]() -> Executor& { return executor; });
  const auto traffic = traffic_of(*spec, place(*spec, {0, 1, 2, 3}, 4));
  CHECK(traffic.routes == std::vector<std::pair<int, int>>{
                              {0, 1}, {0, 2}, {1, 0}, {1, 3}, {2, 0}, {2, 3}, {3, 1}, {3, 2}});
  CHECK(traffic.optimizers == std::vector{0, 2, 1, 3});
  CHECK(traffic.device_of({PlayerId::Kind::stage, 3}) == 3);
  CHECK(traffic.device_of({PlayerId::Kind::optimizer, 1}) == 2);
  CHECK(traffic.device_of({PlayerId::Kind::inputs, 0}) == -1);
}

TEST_CASE("each tensor of a pipeline goes from device to device exactly once", "[actors]") {
  const auto piece = linked_piece("gpt2", "1f1b", 4);
  LittleCluster cluster(piece, {.nodes = 4});
  check_bits(cluster.play(), piece);
  CHECK(cluster.world().misuses().empty());
  // Each edge is tested once. Each of the three steps then crosses three boundaries in both
  // directions. The last stage borrows a tensor that the first one owns, and returns its gradients.
  constexpr std::uint64_t steps = 3, micro_batches = 8;
  constexpr auto boundaries = 3 * 2 * (1 + micro_batches * steps);
  CHECK(cluster.world().transfers() == boundaries + (1 + micro_batches * steps) + (1 + steps));
}

TEST_CASE("tensors within a process use no edge", "[actors]") {
  const auto piece = linked_piece("mlp", "1f1b", 4);
  LittleCluster cluster(piece, {.nodes = 2});
  check_bits(cluster.play(), piece);
  CHECK(cluster.world().misuses().empty());
  // One boundary, in both directions.
  constexpr std::uint64_t steps = 3, micro_batches = 8;
  CHECK(cluster.world().transfers() == 2 * (1 + micro_batches * steps));
}

TEST_CASE("replicas exchange gradients and weights from device to device", "[actors]") {
  const auto piece = linked_piece("mlp", "gpipe", 1, 4);
  LittleCluster cluster(piece, {.nodes = 4});
  check_bits(cluster.play(), piece);
  CHECK(cluster.world().misuses().empty());
  // Each pair exchanges a test and the first weights, then gradients and weights in each step.
  constexpr std::uint64_t steps = 3, pairs = 4 * 3;
  CHECK(cluster.world().transfers() == pairs * (1 + 1 + 2 * steps));
}

TEST_CASE("every synchronous schedule over edges gives the bits of a plain loop", "[actors]") {
  int count = 0;
  for (const auto& schedule : schedules::named_schedules()) {
    if (schedule.mode != schedules::Mode::synchronous) continue;
    for (const int replicas : {1, 2})
      for (const int chunks : {1, 2}) {
        const auto piece =
            linked_piece(count % 2 ? "llama" : "gpt2", schedule.name, 2 * chunks, replicas, chunks);
        const auto rounds = Rounds::make(piece.shape);
        if (!rounds || rounds->of_one_step()->devices() * replicas == 1) continue;
        CAPTURE(schedule.name, replicas, chunks);
        LittleCluster cluster(piece, {.nodes = replicas == 2 ? 3 : 2});
        check_bits(cluster.play(), piece);
        CHECK(cluster.world().misuses().empty());
        CHECK(cluster.world().transfers() >= 33);
        ++count;
      }
  }
  CHECK(count > 10);
}

TEST_CASE("tensors go through the host if a device has no links or links of another kind",
          "[actors]") {
  const auto piece = linked_piece("mlp", "1f1b", 3);
  const auto transfers = [&](const ClusterOrder& order) {
    LittleCluster cluster(piece, order);
    check_bits(cluster.play(), piece);
    CHECK(cluster.world().misuses().empty());
    return cluster.world().transfers();
  };
  CHECK(transfers({.nodes = 3}) > transfers({.nodes = 3, .without_links = 2}));
  CHECK(transfers({.nodes = 3, .without_links = 2}) > 0);
  CHECK(transfers({.nodes = 3, .of_another_kind = 1}) == 0);
  CHECK(transfers({.nodes = 3, .carriers = Carriers::tcp}) == 0);
}

TEST_CASE("a node that dies in the middle of a step costs an attempt and changes no bit",
          "[actors]") {
  auto piece = linked_piece("mlp", "1f1b", 3);
  LittleCluster* here = nullptr;
  piece.layer_fault = in_the_midst([&] { here->kill(2); });
  LittleCluster cluster(piece, {.nodes = 3});
  here = &cluster;
  const auto played = cluster.play();
  check_bits(played, piece);
  const auto told = played.told("warn");
  INFO(told);
  CHECK(told.find("node node-2 (process 0): ") != std::string::npos);
  CHECK(tells_of_death(told));
  CHECK(cluster.world().misuses().empty());
}

TEST_CASE("an attempt that is aborted in the middle of a step changes no bit", "[actors]") {
  auto piece = linked_piece("mlp", "1f1b", 3, 2);
  LittleCluster* here = nullptr;
  piece.layer_fault = in_the_midst([&] { here->fail_player(1); });
  LittleCluster cluster(piece, {.nodes = 3});
  here = &cluster;
  const auto played = cluster.play();
  check_bits(played, piece);
  CHECK(played.told("warn").find("the test has said so") != std::string::npos);
  CHECK(cluster.world().misuses().empty());
  CHECK(cluster.stuck().empty());
}

TEST_CASE("a head hears at once that a player has failed on a node, and the reason", "[actors]") {
  auto piece = linked_piece("mlp", "1f1b", 3);
  piece.layer_fault = in_the_midst([] { throw std::runtime_error("the test has thrown this"); });
  LittleCluster cluster(piece, {.nodes = 3});
  const auto played = cluster.play();
  check_bits(played, piece);
  CHECK(played.told("warn").find("the test has thrown this") != std::string::npos);
}

TEST_CASE("an edge that takes too long ends the attempt with that reason", "[actors]") {
  auto piece = linked_piece("mlp", "1f1b", 3);
  LittleCluster* here = nullptr;
  piece.layer_fault = in_the_midst([&] { here->freeze_devices(1); });
  LittleCluster cluster(piece,
                        {.nodes = 3, .patience = {long_wait, short_wait, long_wait, long_wait}});
  here = &cluster;
  const auto played = cluster.play();
  check_bits(played, piece);
  const auto told = played.told("warn");
  INFO(told);
  CHECK(told.find("tensors from device") != std::string::npos);
  CHECK(told.find("within 1000 ms") != std::string::npos);
  CHECK(cluster.world().misuses().empty());
  CHECK(cluster.stuck().empty());
}

TEST_CASE("edges that are not ready in time end the attempt with that reason", "[actors]") {
  const auto piece = linked_piece("mlp", "1f1b", 3);
  LittleCluster cluster(
      piece,
      {.nodes = 3, .born_frozen = 1, .patience = {short_wait, long_wait, long_wait, long_wait}});
  const auto played = cluster.play();
  check_bits(played, piece);
  const auto told = played.told("warn");
  INFO(told);
  CHECK(told.find("tensors from device") != std::string::npos);
  CHECK(told.find("its link was not made within 1000 ms") != std::string::npos);
  CHECK(cluster.world().misuses().empty());
  CHECK(cluster.stuck().empty());
}

TEST_CASE("a device that does not release memory ends its process", "[actors]") {
  auto piece = linked_piece("mlp", "1f1b", 3);
  LittleCluster* here = nullptr;
  piece.layer_fault = in_the_midst([&] { here->block_devices(1); });
  LittleCluster cluster(piece,
                        {.nodes = 3, .patience = {long_wait, short_wait, long_wait, short_wait}});
  here = &cluster;
  const auto played = cluster.play();
  check_bits(played, piece);
  INFO(cluster.stuck());
  CHECK(cluster.stuck().find("does not let go of tensors") != std::string::npos);
}

TEST_CASE("a device that has failed ends its process after all nodes have heard of it",
          "[actors]") {
  auto piece = linked_piece("mlp", "1f1b", 3);
  LittleCluster* here = nullptr;
  piece.layer_fault = in_the_midst([&] { here->break_devices(1); });
  LittleCluster cluster(piece, {.nodes = 3});
  here = &cluster;
  const auto played = cluster.play();
  check_bits(played, piece);
  CHECK(played.told("warn").find("the test has broken it") != std::string::npos);
  CHECK(cluster.stuck().find("a device has failed: the test has broken it") != std::string::npos);
}
