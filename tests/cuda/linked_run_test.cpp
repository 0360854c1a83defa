// Runs over nodes whose GPUs are linked by memory that they share.

#include <atomic>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "actors/device_thread.h"
#include "kernels/cuda/arena.h"
#include "little_cluster.h"
#include "same.h"
#include "tests/cuda_on_cores/driver.h"
#include "tests/cuda_on_cores/queue.h"
#include "transport/ipc_fabric.h"

namespace troupe::actors {
namespace {

LittleDevice make_linked_gpu(const std::shared_ptr<DeviceProgress>& devices) {
  auto gpu = kernels::open_device();
  auto memory = kernels::device_memory();
  const auto exported = kernels::cuda::exported(*memory);
  REQUIRE(exported.ok());
  Device& computes = *gpu;
  LittleDevice made;
  made.executor = std::make_unique<DeviceThread>(
      std::move(gpu), std::move(memory), devices,
      DeviceLimits{.ahead = 2, .patience = std::chrono::minutes(10)});
  auto fabric = transport::open_ipc_fabric(
      {.computes = computes,
       .copies = kernels::open_device(),
       .memory = **exported,
       .import = [](std::size_t reserved) { return kernels::cuda::import_memory(0, reserved); }});
  REQUIRE(fabric.ok());
  made.linked = std::make_unique<LinkedDevice>(made.executor->memory());
  made.linked->links.push_back(std::make_unique<DeviceLinks>(
      transport::kind_of_ipc, "here", std::vector<std::string>{"here"}, std::move(*fabric),
      [&computes] { computes.enter(); }));
  return made;
}

ClusterOrder cluster_of(int nodes) {
  return {.nodes = nodes, .make_device = [devices = std::make_shared<DeviceProgress>()] {
            return make_linked_gpu(devices);
          }};
}

Piece piece_of(const std::string& model, int stages, int replicas) {
  RoundShape shape;
  shape.schedule = "1f1b";
  shape.stages = stages;
  shape.replicas = replicas;
  shape.micro_batches = shape.groups = 4;
  auto piece = Piece::of(model, shape);
  piece.save_every = 1;
  return piece;
}

void check_bits(const Played& played, Piece piece) {
  piece.layer_fault = {};
  INFO(played.outcome.why);
  INFO(played.told("warn"));
  CHECK(played.outcome.how == Outcome::How::done);
  CHECK(played.weights == LittleRun(piece).plainly());
  CHECK(played.bytes_left == 0);
}

TEST_CASE("nodes whose GPUs share memory train to the bits of a plain loop") {
  cuda_on_cores::set_temper({});
  for (const auto& [model, stages, replicas, nodes] :
       {std::tuple("gpt2", 3, 1, 3), std::tuple("mlp", 1, 4, 4), std::tuple("mlp", 2, 2, 2)}) {
    CAPTURE(model, stages, replicas);
    const auto piece = piece_of(model, stages, replicas);
    const auto before = cuda_on_cores::pieces_imported();
    LittleCluster cluster(piece, cluster_of(nodes));
    check_bits(cluster.play(), piece);
    CHECK(cuda_on_cores::pieces_imported() > before);
  }
}

TEST_CASE("a node that dies in the midst of a step costs its neighbours an epoch and no bit") {
  cuda_on_cores::set_temper({});
  auto piece = piece_of("mlp", 3, 1);
  LittleCluster* here = nullptr;
  piece.layer_fault = {
      .unit = 2,
      .forward =
          [&, done = std::make_shared<std::atomic<bool>>(false)](const models::Pass& pass,
                                                                 Tensor&) {
            if (pass.key.step == 1 && pass.key.sample >= 2 && !done->exchange(true)) here->kill(2);
          },
      .backward = {}};
  const auto before = cuda_on_cores::pieces_imported();
  LittleCluster cluster(piece, cluster_of(3));
  here = &cluster;
  check_bits(cluster.play(), piece);
  CHECK(cuda_on_cores::pieces_imported() > before);
}

}  // namespace
}  // namespace troupe::actors
