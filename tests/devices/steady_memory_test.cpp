#include "core/memory/steady_memory.h"

#include <algorithm>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "catch.h"
#include "core/memory/stream.h"
#include "played_device.h"

namespace troupe {
namespace {

using Turn = SteadyMemory::Turn;

/// A memory source with a limited number of bytes.
class LittleMemory final : public MemorySource {
 public:
  explicit LittleMemory(std::size_t bytes) : left_(bytes) {}
  void* allocate(std::size_t bytes) override {
    if (bytes > left_) return nullptr;
    left_ -= bytes;
    return heap_->allocate(bytes);
  }
  void release(void* memory, std::size_t bytes) override {
    left_ += bytes;
    heap_->release(memory, bytes);
  }

 private:
  std::unique_ptr<MemorySource> heap_ = host_memory();
  std::size_t left_;
};

/// A device that does nothing, and its memory.
struct Scene {
  explicit Scene(std::unique_ptr<MemorySource> source = host_memory())
      : pool(std::move(source), devices) {}

  PlayedDevice device{std::make_shared<PlayedQueue>()};
  std::shared_ptr<DeviceProgress> devices = std::make_shared<DeviceProgress>();
  MemoryPool pool;
  Stream stream{pool, device};
  SteadyMemory memory;
};

/// Two temporary blocks of one size, and one that outlives the turn.
struct Taken {
  std::vector<const void*> places;
  Tensor kept;
};
Taken take_turn(Scene& scene, SteadyMemory::Work work) {
  const Turn turn(scene.memory, scene.stream, work);
  Taken taken;
  for (int passing = 0; passing < 2; ++passing)
    taken.places.push_back(Tensor(scene.stream.make({100})).raw());
  taken.kept = scene.stream.make({100});
  taken.places.push_back(taken.kept.raw());
  return taken;
}

TEST_CASE("repeated work gets the same memory, whatever other work takes") {
  Scene scene;
  // Blocks that outlive a turn are known only at its end, so the first turns of both share blocks.
  for (const SteadyMemory::Work work : {7, 8}) (void)take_turn(scene, work);
  const auto wanted = take_turn(scene, 7).places;
  CHECK(wanted[0] == wanted[1]);
  CHECK(wanted[1] != wanted[2]);
  const Tensor other = scene.stream.make({100});
  CHECK(take_turn(scene, 8).places[2] != wanted[2]);
  CHECK(take_turn(scene, 7).places == wanted);
  const auto allocated = scene.pool.counters().allocations;
  for (int time = 0; time < 5; ++time) (void)take_turn(scene, 7);
  CHECK(scene.pool.counters().allocations == allocated);
}

TEST_CASE("a block is reused only after nobody holds it") {
  Scene scene;
  std::set<const void*> places;
  std::vector<Taken> held;
  for (int turn = 0; turn < 3; ++turn) {
    held.push_back(take_turn(scene, 1));
    places.insert(held.back().places[2]);
  }
  CHECK(places.size() == 3);
  held.clear();
  CHECK(places.contains(take_turn(scene, 1).places[2]));
}

TEST_CASE("a block that another device reads is reused only after the reading") {
  const bool has_seen = GENERATE(true, false), has_done = GENERATE(true, false);
  Scene scene;
  DeviceWork mine(*scene.devices);
  mine.begin_job();
  auto taken = take_turn(scene, 1);
  const auto* place = taken.places[2];
  std::thread([&] {
    DeviceWork other(*scene.devices);
    other.begin_job();
    if (has_seen) CHECK(taken.kept.raw() == place);
    taken.kept = {};
    (void)other.end_job();
    if (has_done) other.idle();
  }).join();
  CHECK((take_turn(scene, 1).places[2] == place) == (has_done || !has_seen));
  (void)mine.end_job();
  mine.idle();
}

TEST_CASE("a turn with other requests gets other memory, and releases what it does not use") {
  Scene scene;
  (void)take_turn(scene, 1);
  const auto wanted = take_turn(scene, 1);
  const auto used = scene.pool.counters().bytes_in_use;
  {
    const Turn turn(scene.memory, scene.stream, 1);
    const Tensor large = scene.stream.make({5000});
    CHECK(large.raw() != wanted.places[2]);
  }
  CHECK(scene.pool.counters().bytes_in_use >= used);
  scene.memory = SteadyMemory();
  CHECK(scene.pool.counters().bytes_in_use == wanted.kept.block()->bytes);
}

const std::size_t block = MemoryPool::size_of_block(100 * sizeof(float));

TEST_CASE("a full device releases cached blocks, and no block in use") {
  Scene scene(std::make_unique<LittleMemory>(6 * block));
  DeviceWork mine(*scene.devices);
  mine.begin_job();
  auto held = take_turn(scene, 1).kept;
  std::fill_n(held.data<float>(), 100, 7.0f);
  for (int turn = 0; turn < 3; ++turn) (void)take_turn(scene, 1);
  REQUIRE(scene.pool.counters().bytes_in_use > 2 * block);
  {
    const Tensor all_else = scene.stream.make({5 * 100});
    CHECK(scene.pool.counters().bytes_in_use <= 6 * block);
    CHECK_THROWS_AS(scene.stream.make({100, 100}), OutOfMemory);
  }
  CHECK(std::all_of(held.data<float>(), held.data<float>() + 100, [](float x) { return x == 7; }));
  // From here on the pool serves all requests, and nothing more is cached.
  (void)take_turn(scene, 1);
  CHECK(scene.pool.counters().bytes_in_use == block);
  (void)mine.end_job();
  mine.idle();
}

TEST_CASE("a turn continues if the device fills up within it") {
  Scene scene(std::make_unique<LittleMemory>(5 * block));
  for (int turn = 0; turn < 2; ++turn) (void)take_turn(scene, 1);
  {
    const Turn turn(scene.memory, scene.stream, 1);
    (void)scene.stream.make({100});
    (void)scene.stream.make({5 * 100});
    (void)scene.stream.make({100});
  }
  CHECK(scene.pool.counters().bytes_in_use == 0);
}

TEST_CASE("a full device does not take a block that another device may still read") {
  const bool has_done = GENERATE(true, false);
  Scene scene(std::make_unique<LittleMemory>(4 * block));
  DeviceWork mine(*scene.devices);
  mine.begin_job();
  std::vector<Tensor> parts(4);
  for (auto& part : parts) part = scene.stream.make({100});
  std::thread([&] {
    DeviceWork other(*scene.devices);
    other.begin_job();
    (void)parts[0].raw();
    (void)other.end_job();
    if (has_done) other.idle();
  }).join();
  parts.clear();
  if (has_done)
    CHECK_NOTHROW(scene.stream.make({4 * 100}));
  else
    CHECK_THROWS_AS(scene.stream.make({4 * 100}), OutOfMemory);
  CHECK_NOTHROW(scene.stream.make({3 * 100}));
  (void)mine.end_job();
  mine.idle();
}

TEST_CASE("on the cores the pool serves all requests") {
  MemoryPool pool;
  Stream stream(pool);
  SteadyMemory memory;
  {
    const Turn turn(memory, stream, 1);
    (void)stream.make({100});
  }
  CHECK(pool.counters().bytes_in_use == 0);
}

}  // namespace
}  // namespace troupe
