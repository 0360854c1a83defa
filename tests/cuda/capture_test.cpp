// Recording and caching of graphs. Tests of the simulated device: calls that CUDA refuses during a
// capture invalidate it.

#include <cuda_runtime.h>

#include <array>
#include <cstdint>
#include <vector>

#include "kernels/cuda/graphs.h"
#include "kernels/cuda/machine/queue.h"
#include "tests/catch.h"

namespace troupe::kernels::cuda {
namespace {

/// Pinned memory that queues of the simulated device write to by copying.
class Numbers {
 public:
  Numbers() {
    void* memory = nullptr;
    check(cudaHostAlloc(&memory, 2 * sizeof(std::uint64_t), cudaHostAllocPortable));
    at_ = static_cast<std::uint64_t*>(memory);
    at_[0] = at_[1] = 0;
  }
  ~Numbers() { (void)cudaFreeHost(at_); }
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;
  std::uint64_t& from() { return at_[0]; }
  std::uint64_t& to() { return at_[1]; }

 private:
  std::uint64_t* at_ = nullptr;
};

struct Queue {
  cudaStream_t raw = nullptr;
  Queue() { check(cudaStreamCreateWithFlags(&raw, cudaStreamNonBlocking)); }
  ~Queue() { (void)cudaStreamDestroy(raw); }
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
};

cudaError_t copy(const std::uint64_t& from, std::uint64_t& to, cudaStream_t queue) {
  return cudaMemcpyAsync(&to, &from, sizeof to, cudaMemcpyDefault, queue);
}

TEST_CASE("recorded work runs each time that its graph is launched") {
  Numbers numbers;
  Queue queue;
  check(cudaStreamBeginCapture(queue.raw, cudaStreamCaptureModeThreadLocal));
  check(copy(numbers.from(), numbers.to(), queue.raw));
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(queue.raw, &graph));
  cudaGraphExec_t ready = nullptr;
  check(cudaGraphInstantiate(&ready, graph, 0));
  check(cudaGraphDestroy(graph));
  numbers.from() = 7;
  check(cudaStreamSynchronize(queue.raw));
  CHECK(numbers.to() == 0);
  for (const std::uint64_t number : {7, 8}) {
    numbers.from() = number;
    check(cudaGraphLaunch(ready, queue.raw));
    Queue other;
    CHECK(cudaGraphLaunch(ready, other.raw) != cudaSuccess);
    check(cudaStreamSynchronize(queue.raw));
    CHECK(numbers.to() == number);
  }
  check(cudaGraphExecDestroy(ready));
}

TEST_CASE("waiting, polling, allocating and pageable copies invalidate a capture") {
  Numbers numbers;
  Queue queue, other;
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  check(cudaEventRecord(event, other.raw));
  std::uint64_t common = 0;
  void* memory = nullptr;
  const auto spoils = [&](auto refused) {
    check(cudaStreamBeginCapture(queue.raw, cudaStreamCaptureModeThreadLocal));
    check(copy(numbers.from(), numbers.to(), queue.raw));
    const bool is_refused = refused() != cudaSuccess;
    cudaGraph_t graph = nullptr;
    const bool is_spoilt = cudaStreamEndCapture(queue.raw, &graph) != cudaSuccess;
    if (graph) check(cudaGraphDestroy(graph));
    return is_spoilt && !graph && is_refused;
  };
  CHECK(spoils([&] { return cudaStreamSynchronize(queue.raw); }));
  CHECK(spoils([&] { return cudaStreamSynchronize(other.raw); }));
  CHECK(spoils([&] { return cudaEventQuery(event); }));
  CHECK(spoils([&] { return cudaMalloc(&memory, 64); }));
  CHECK(spoils([&] { return cudaHostAlloc(&memory, 64, cudaHostAllocPortable); }));
  CHECK(spoils([&] { return copy(common, numbers.to(), queue.raw); }));
  CHECK_FALSE(spoils([&] { return copy(numbers.from(), numbers.to(), queue.raw); }));
  check(cudaStreamSynchronize(other.raw));
  check(cudaEventDestroy(event));
}

void give_copy(WorkList::Told told, cudaStream_t queue) {
  const auto* from = told.next<const std::uint64_t*>();
  auto* to = told.next<std::uint64_t*>();
  check(copy(*from, *to, queue));
}

TEST_CASE("a repeated work list becomes a graph and the least recently played is evicted") {
  Numbers numbers;
  Queue queue, recorder;
  constexpr std::size_t more_than_are_kept = 300;
  std::vector<WorkList> all(more_than_are_kept);
  {
    Graphs graphs(queue.raw, recorder.raw);
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (std::size_t piece = 0; piece <= i; ++piece)
        all[i].add(give_copy, static_cast<const std::uint64_t*>(&numbers.from()), &numbers.to());
      for (int time = 0; time < 3; ++time) graphs.play(all[i]);
    }
    CHECK(graphs.counts().plain == all.size());
    CHECK(graphs.counts().recorded == all.size());
    CHECK(graphs.counts().played == 2 * all.size());
    graphs.play(all.back());
    CHECK(graphs.counts().played == 2 * all.size() + 1);
    // Its graph was evicted, so it counts as new.
    graphs.play(all.front());
    CHECK(graphs.counts().plain == all.size() + 1);
    numbers.from() = 5;
    check(cudaStreamSynchronize(queue.raw));
    CHECK(numbers.to() == 5);
  }
}

void give_what_waits(WorkList::Told, cudaStream_t queue) { check(cudaStreamSynchronize(queue)); }

TEST_CASE("work that CUDA cannot record runs directly") {
  Queue queue, recorder;
  WorkList work;
  work.add(give_what_waits);
  Graphs graphs(queue.raw, recorder.raw);
  for (int time = 0; time < 5; ++time) graphs.play(work);
  CHECK(graphs.counts().plain == 5);
  CHECK(graphs.counts().refused == 1);
}

/// A struct with padding between its members.
struct Gaps {
  char letter;
  std::int64_t number;
  char other;
};

TEST_CASE("work lists are equal if their arguments are equal") {
  const auto list_of = [](unsigned char between, char letter) {
    alignas(Gaps) std::array<unsigned char, sizeof(Gaps)> bytes;
    bytes.fill(between);
    auto* gaps = reinterpret_cast<Gaps*>(bytes.data());
    gaps->letter = letter;
    gaps->number = 1;
    gaps->other = 'b';
    WorkList list;
    list.add(give_copy, *gaps);
    return list;
  };
  CHECK(list_of(0, 'a') == list_of(0xff, 'a'));
  CHECK(list_of(0, 'a').hash() == list_of(0xff, 'a').hash());
  CHECK(list_of(0, 'a') != list_of(0, 'c'));
  CHECK(list_of(0, 'a').hash() != list_of(0, 'c').hash());
}

}  // namespace
}  // namespace troupe::kernels::cuda
