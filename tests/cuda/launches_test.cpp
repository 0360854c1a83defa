// How many launches and waits operations on many tensors need. The simulated device counts them.

#include <span>
#include <string>
#include <vector>

#include "kernels/steps.h"
#include "models/arithmetic.h"
#include "models/stale/gap.h"
#include "same.h"
#include "tests/cuda_on_cores/queue.h"

namespace troupe::kernels {
namespace {

TEST_CASE("the squares of a few tensors take one launch, and of many a few") {
  const auto device = open_device();
  MemoryPool memory(device_memory());
  Stream stream(memory, *device);
  const Tensor x = tensor(stream, numbers(1000, 1), {1000});
  Tensor sums = stream.make({300}, DType::f64);
  const auto launches = [&](std::size_t tensors) {
    const std::vector<std::span<const float>> all(tensors, {x.f32(), 1000});
    const auto before = cuda_on_cores::kernels_put();
    squares_of_blocks(stream, all, sums.data<double>());
    stream.wait();
    return cuda_on_cores::kernels_put() - before;
  };
  CHECK(launches(0) == 0);
  CHECK(launches(1) == 1);
  CHECK(launches(128) == 1);
  CHECK(launches(129) == 2);
  CHECK(launches(300) == 3);
}

TEST_CASE("sums over lists of tensors run as a graph when they come again") {
  const auto device = open_device();
  MemoryPool memory(device_memory());
  Stream stream(memory, *device);
  const Tensor x = tensor(stream, numbers(1000, 1), {1000});
  const std::vector<std::span<const float>> all = {{x.f32(), 1000}, {x.f32(), 17}};
  constexpr int launches = 8, turns = 4;
  Tensor sums = stream.make({2 * launches}, DType::f64);
  for (int turn = 0; turn < turns; ++turn) {
    device->begin_repeated();
    for (int i = 0; i < launches; ++i) squares_of_blocks(stream, all, sums.data<double>() + 2 * i);
    device->end_repeated();
  }
  stream.wait();
  const auto counts = cuda::graph_counts(*device);
  CHECK(counts.recorded == 1);
  CHECK(counts.played + counts.plain == turns);
  CHECK(counts.played >= 2);
}

}  // namespace
}  // namespace troupe::kernels

namespace troupe::models {
namespace {

/// Returns how often the host waits while the gradients of a late micro-batch are penalised and
/// measured.
std::uint64_t waits_of_mend(std::size_t count) {
  const auto device = kernels::open_device();
  MemoryPool memory(kernels::device_memory());
  Stream stream(memory, *device);
  const auto config = OptimizerConfig::of(OptimizerConfig::Kind::sgd);
  Lateness lateness{.staleness = {}, .delay = 1, .borrowed = {}};
  lateness.staleness.gap_penalty = StalenessOptions::GapPenalty::tensor_norm;
  std::vector<Parameter> parameters(count);
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < count; ++i) {
    parameters[i].name = "w" + std::to_string(i);
    parameters[i].shape = {100};
    tensors.push_back(filled(stream, {100}, DType::f32, 0.5));
  }
  Optimizer optimizer(config, parameters, {}, kernels::Precision::fp32, lateness);
  const auto first = optimizer.initial(stream, 1);
  StageGradients gradients;
  gradients.slots = tensors;
  const auto next = optimizer.step(stream, first, std::move(gradients), 1);
  const Version now{next, optimizer.moments()};
  const auto owned = owned_slots(parameters, {});
  const auto configs = configs_of(config, parameters, owned);
  const GapRules rules{config, configs, lateness, parameters, owned};
  const Gap gap(rules, now, first.get());
  LateGradients late(rules, {.gap = &gap});
  late.measure();
  tensors.resize(count * static_cast<std::size_t>(late.sets()));
  stream.wait();
  const auto before = cuda_on_cores::host_waits();
  late.mend(stream, tensors);
  CHECK(late.penalty_mean() > 1);
  return cuda_on_cores::host_waits() - before;
}

TEST_CASE("the host waits for late gradients as often with many parameters as with one") {
  CHECK(waits_of_mend(9) == waits_of_mend(1));
}

}  // namespace
}  // namespace troupe::models
