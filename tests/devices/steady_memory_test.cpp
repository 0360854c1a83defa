#include "core/steady_memory.h"

#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "catch.h"
#include "core/stream.h"
#include "played_device.h"

namespace troupe {
namespace {

using Turn = SteadyMemory::Turn;

/// A device that does nothing, and its memory.
struct Scene {
  PlayedDevice device{std::make_shared<PlayedQueue>()};
  std::shared_ptr<DeviceProgress> devices = std::make_shared<DeviceProgress>();
  MemoryPool pool{host_memory(), devices};
  Stream stream{pool, device};
  SteadyMemory memory;
};

/// Two blocks of a size in passing, and one that outlives the turn.
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

TEST_CASE("work that comes again finds its memory where it was, whatever others take") {
  Scene scene;
  // What a turn keeps is not known before its end: so the first ones take some from all.
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

TEST_CASE("what somebody holds is not taken again, and then it is") {
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

TEST_CASE("what another device is to read is taken again when it has done so") {
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

TEST_CASE(
    "a turn that takes other things gets other memory, and gives back what it does not take") {
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

TEST_CASE("on the cores the pool serves") {
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
