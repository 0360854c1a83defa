// Runs over nodes whose GPUs are linked by shared memory or by NCCL.

#include <nccl.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "actors/device_thread.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/machine/arena.h"
#include "little_cluster.h"
#include "same.h"
#include "tests/cuda_on_cores/driver.h"
#include "tests/cuda_on_cores/queue.h"
#include "transport/links/ipc_fabric.h"
#include "transport/links/nccl_fabric.h"

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
      {.copies = kernels::open_device(), .memory = **exported, .import = [](std::size_t reserved) {
         return kernels::cuda::import_memory(0, reserved);
       }});
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

/// Opens a different GPU each time, since NCCL cannot link a GPU with itself.
LittleDevice make_gpu_with_nccl(int number, const std::shared_ptr<DeviceProgress>& devices) {
  auto gpu = kernels::cuda::open_device(number);
  auto memory = kernels::cuda::device_memory(number);
  REQUIRE((gpu.ok() && memory.ok()));
  Device& computes = **gpu;
  LittleDevice made;
  made.executor = std::make_unique<DeviceThread>(
      std::move(*gpu), std::move(*memory), devices,
      DeviceLimits{.ahead = 2, .patience = std::chrono::minutes(10)});
  const auto kind = transport::kind_of_nccl();
  const auto bus = transport::bus_of_gpu(number);
  auto fabric = transport::open_nccl_fabric(
      {.device = number,
       .queue = static_cast<CUstream_st*>(kernels::cuda::native_queue(computes))});
  REQUIRE((kind.ok() && bus.ok() && fabric.ok()));
  made.linked = std::make_unique<LinkedDevice>(made.executor->memory());
  made.linked->links.push_back(
      std::make_unique<DeviceLinks>(*kind, *bus, std::vector<std::string>{}, std::move(*fabric),
                                    [&computes] { computes.enter(); }));
  return made;
}

ClusterOrder cluster_with_nccl(int nodes) {
  return {.nodes = nodes,
          .make_device = [devices = std::make_shared<DeviceProgress>(), number = 0]() mutable {
            return make_gpu_with_nccl(number++, devices);
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

TEST_CASE("nodes whose GPUs share memory give the bits of a plain loop") {
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

TEST_CASE("nodes whose GPUs are linked by NCCL give the bits of a plain loop") {
  cuda_on_cores::set_temper({});
  for (const auto& [model, stages, replicas, exactness] :
       {std::tuple("gpt2", 3, 1, Exactness::bits), std::tuple("mlp", 1, 4, Exactness::bits),
        // The sum of two addends does not depend on their order.
        std::tuple("mlp", 2, 2, Exactness::samples)}) {
    CAPTURE(model, stages, replicas);
    auto piece = piece_of(model, stages, replicas);
    piece.exactness = exactness;
    const auto before = cuda_on_cores::operations_put();
    {
      LittleCluster cluster(piece, cluster_with_nccl(stages * replicas));
      check_bits(cluster.play(), piece);
    }
    CHECK(cuda_on_cores::operations_put() > before);
    CHECK(cuda_on_cores::communicators_left() == 0);
  }
}

/// Returns how many attempts a run lost.
std::size_t lost_attempts(const Played& played) {
  const std::string warned = played.told("warn"), lost = "; recovering from ";
  std::size_t count = 0;
  for (auto at = warned.find(lost); at != std::string::npos; at = warned.find(lost, at + 1))
    ++count;
  return count;
}

/// Plays a run in which a node dies in the middle of a step. Checks that this costs one attempt.
void play_with_a_death(const ClusterOrder& order) {
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
  LittleCluster cluster(piece, order);
  here = &cluster;
  const auto played = cluster.play();
  check_bits(played, piece);
  CAPTURE(played.told("warn"));
  CHECK(lost_attempts(played) == 1);
}

TEST_CASE("the death of a node within a step costs one attempt and changes no bit") {
  const auto before = cuda_on_cores::pieces_imported();
  play_with_a_death(cluster_of(3));
  CHECK(cuda_on_cores::pieces_imported() > before);
}

TEST_CASE("the death of a node costs one attempt and leaves no NCCL communicator") {
  const auto before = cuda_on_cores::operations_put();
  play_with_a_death(cluster_with_nccl(3));
  CHECK(cuda_on_cores::operations_put() > before);
  CHECK(cuda_on_cores::communicators_left() == 0);
}

}  // namespace
}  // namespace troupe::actors
