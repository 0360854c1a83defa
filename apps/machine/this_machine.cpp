#include "apps/machine/this_machine.h"

#include <algorithm>
#include <chrono>

#include "apps/machine/machine_share.h"
#include "kernels/attention.h"
#include "kernels/conv2d.h"
#include "kernels/copy.h"
#include "kernels/peak.h"
#include "models/work.h"

namespace troupe::apps {
namespace {

using schedules::DeviceProfile;

// Estimates: launching a kernel wakes its helper threads, and a transfer between devices of one
// machine is a mailbox message.
constexpr auto launch = std::chrono::microseconds(2);
constexpr double mailbox_seconds = 20e-6;
constexpr int tries = 3;

/// Returns the shortest of several tries, since disturbances only add time.
template <class Body>
double seconds_of(Body body) {
  double best = 1e9;
  for (int i = 0; i < tries; ++i) {
    const auto start = std::chrono::steady_clock::now();
    body();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    best = std::min(best, std::max(taken.count(), 1e-9));
  }
  return best;
}

Tensor zeros(Stream& stream, const Shape& shape) {
  Tensor tensor = stream.make(shape);
  kernels::fill(stream, 0, tensor.f32(), tensor.count());
  return tensor;
}

class Measurement {
 public:
  Measurement(Stream& stream, kernels::Precision precision)
      : stream_(stream), precision_(precision) {
    profile_.name = "this machine, " + std::to_string(stream.threads()) + " threads";
    profile_.overhead = launch;
    profile_.rate = {kernels::fma_peak(stream, kernels::Precision::fp32), bandwidth()};
    profile_.link = {.latency = mailbox_seconds, .bandwidth = profile_.rate.bandwidth};
  }

  DeviceProfile run() {
    products();
    attention();
    convolution();
    return std::move(profile_);
  }

 private:
  template <class Body>
  void add(const models::KernelWork& work, Body body) {
    profile_.kernels.push_back(
        {std::string(work.kernel), {work.operations / seconds_of(body), profile_.rate.bandwidth}});
  }

  double bandwidth() {
    constexpr std::int64_t rows = 64, columns = 1 << 17;
    const Tensor from = zeros(stream_, {rows, columns});
    Tensor to = zeros(stream_, {rows, columns});
    const double seconds = seconds_of([&] {
      kernels::copy_rows(stream_, {from.f32(), columns}, {to.f32(), columns}, rows, columns);
    });
    return 2 * static_cast<double>(from.bytes()) / seconds;
  }

  void products() {
    constexpr std::int64_t size = 512;
    const auto work = models::product_work(size, size, size);
    const kernels::LinearShape shape{.inputs = size, .outputs = size, .precision = precision_};
    const Tensor plain = zeros(stream_, {size, size});
    const Tensor x = kernels::as_operand(stream_, plain, precision_);
    const kernels::PackedLinear w(stream_, shape, plain.f32());
    Tensor y = zeros(stream_, {size, size});
    add(work.forward[0], [&] { kernels::linear_forward(stream_, w, x, nullptr, y); });
    add(work.backward_input[0], [&] { kernels::linear_backward_input(stream_, w, x, y); });
    add(work.backward_weight[0],
        [&] { kernels::linear_backward_weight(stream_, shape, x, x, y.f32(), size); });
  }

  void attention() {
    const kernels::AttentionShape shape{
        .batch = 2, .length = 256, .heads = 4, .kv_heads = 4, .width = 64};
    const auto work = models::attention_work(shape);
    const std::int64_t row = shape.heads * shape.width;
    const Tensor x = zeros(stream_, {shape.batch, shape.length, row});
    Tensor y = zeros(stream_, x.shape()), dq = y, dk = zeros(stream_, x.shape()),
           dv = zeros(stream_, x.shape());
    Tensor log_sums = zeros(stream_, {shape.batch, shape.heads, shape.length});
    const kernels::HeadsIn in{x.f32(), row};
    add(work.forward[0], [&] {
      kernels::attention_forward(stream_, shape, in, in, in, {y.f32(), row}, log_sums.f32());
    });
    add(work.backward_input[0], [&] {
      kernels::attention_backward(stream_, shape, in, in, in, in, log_sums.f32(), in,
                                  {dq.f32(), row}, {dk.f32(), row}, {dv.f32(), row});
    });
  }

  void convolution() {
    const kernels::Conv2dShape shape{.batch = 4,
                                     .in_channels = 32,
                                     .height = 16,
                                     .width = 16,
                                     .out_channels = 32,
                                     .kernel = 3,
                                     .padding = 1};
    const Tensor x = zeros(stream_, {shape.batch, shape.in_channels, shape.height, shape.width});
    Tensor y = zeros(stream_, x.shape());
    Tensor w = zeros(stream_, {shape.out_channels, shape.in_channels, shape.kernel, shape.kernel});
    const auto additions = x.count() * w.count() / shape.out_channels;
    const double operations = 2 * static_cast<double>(additions);
    add({"conv2d_forward", operations},
        [&] { kernels::conv2d_forward(stream_, shape, x.f32(), w.f32(), y.f32()); });
    add({"conv2d_backward_input", operations},
        [&] { kernels::conv2d_backward_input(stream_, shape, w.f32(), x.f32(), y.f32()); });
    add({"conv2d_backward_weight", operations},
        [&] { kernels::conv2d_backward_weight(stream_, shape, x.f32(), x.f32(), w.f32()); });
  }

  Stream& stream_;
  kernels::Precision precision_;
  DeviceProfile profile_;
};

}  // namespace

schedules::Cluster this_machine(const Shares& shares, const DeviceProfile& profile) {
  const int each = (shares.devices + shares.nodes - 1) / shares.nodes;
  schedules::Cluster cluster;
  for (int i = 0; i < shares.nodes; ++i) {
    auto& node = cluster.nodes.emplace_back();
    node.name = shares.nodes == 1 ? "here" : "here" + std::to_string(i);
    node.devices.assign(static_cast<std::size_t>(each),
                        {.speed = 1, .memory = shares.memory / (each * shares.nodes)});
    node.inside = node.outside = profile.link;
  }
  if (shares.gpus.empty()) return cluster;
  // All nodes have the same GPUs.
  std::vector<schedules::ClusterDevice> all(static_cast<std::size_t>(each * shares.nodes));
  schedules::put_on_gpus(all, shares.gpus);
  auto next = all.begin();
  for (auto& node : cluster.nodes)
    for (auto& device : node.devices) device = *next++;
  return cluster;
}

DeviceProfile measure_this_machine(int devices, kernels::Precision precision) {
  const int cores = own_machine_share().cores();
  MemoryPool memory;
  Stream stream(memory, std::max(1, cores / devices));
  return Measurement(stream, precision).run();
}

double measure_products(int threads, kernels::Precision precision) {
  constexpr std::int64_t size = 256, rows_of_thread = 128, most_rows = 32'768;
  constexpr auto patience = std::chrono::milliseconds(10);
  constexpr int most = 1000;
  // Each thread has the same work, so that the rates of few and of many cores compare.
  const auto rows = std::min(most_rows, rows_of_thread * std::max(1, threads));
  MemoryPool memory;
  Stream stream(memory, std::max(1, threads));
  const kernels::LinearShape shape{.inputs = size, .outputs = size, .precision = precision};
  const Tensor plain = zeros(stream, {rows, size}), weights = zeros(stream, {size, size});
  const Tensor x = kernels::as_operand(stream, plain, precision);
  const kernels::PackedLinear w(stream, shape, weights.f32());
  Tensor y = zeros(stream, {rows, size});
  double best = 1e9;
  const auto until = std::chrono::steady_clock::now() + patience;
  for (int i = 0; i < most && (i == 0 || std::chrono::steady_clock::now() < until); ++i)
    best = std::min(best, seconds_of([&] { kernels::linear_forward(stream, w, x, nullptr, y); }));
  return models::product_work(rows, size, size).forward[0].operations / best;
}

double measure_slowness(kernels::Precision precision) {
  return measure_products(1, kernels::Precision::fp32) / measure_products(1, precision);
}

schedules::DeviceProfile nominal_device() {
  schedules::DeviceProfile profile;
  profile.name = "a middling core";
  profile.rate = {.operations = 100e9, .bandwidth = 20e9};
  profile.overhead = launch;
  profile.link = {.latency = mailbox_seconds, .bandwidth = profile.rate.bandwidth};
  return profile;
}

}  // namespace troupe::apps
