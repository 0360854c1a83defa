// A device's memory, and transfers to it and back.

#include <algorithm>
#include <caf/all.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/nodes/proxy.h"
#include "devices_run.h"
#include "kernels/copy.h"
#include "little_run.h"
#include "same.h"

namespace troupe {
namespace {

using kernels::device_memory;
using kernels::open_device;

constexpr std::size_t mib = std::size_t{1} << 20;

TEST_CASE("blocks of all sizes are adjacent, and released blocks are reused") {
  if (!open_device()) return;
  const auto source = device_memory();
  std::vector<std::pair<std::byte*, std::size_t>> blocks;
  for (const std::size_t bytes : {std::size_t{64}, 3 * mib, std::size_t{513}, 5 * mib, mib})
    blocks.emplace_back(static_cast<std::byte*>(source->allocate_lasting(bytes)), bytes);
  for (std::size_t i = 1; i < blocks.size(); ++i) {
    const auto& [begin, bytes] = blocks[i - 1];
    REQUIRE(begin);
    CHECK(reinterpret_cast<std::uintptr_t>(begin) % 512 == 0);
    CHECK(begin + (bytes + 511) / 512 * 512 == blocks[i].first);
  }
  // Three released neighbours merge into one free range, whatever the order of their release.
  for (const std::size_t i : {1, 3, 2}) source->release(blocks[i].first, blocks[i].second);
  CHECK(source->allocate_lasting(8 * mib + 1024) == blocks[1].first);
}

TEST_CASE("blocks for a pass and blocks for the whole run grow from opposite ends") {
  if (!open_device()) return;
  const auto source = device_memory();
  auto* const passing = static_cast<std::byte*>(source->allocate(512));
  auto* const lasting = static_cast<std::byte*>(source->allocate_lasting(512));
  CHECK(static_cast<std::byte*>(source->allocate(512)) == passing - 512);
  CHECK(static_cast<std::byte*>(source->allocate_lasting(512)) == lasting + 512);
  CHECK(lasting + 512 < passing - 512);
}

TEST_CASE("an error about a full device says what was wanted and what is free") {
  if (!open_device()) return;
  MemoryPool pool(device_memory());
  pool.expect(123);
  const auto kept = pool.take(mib);
  const auto room = device_memory()->room();
  REQUIRE(room);
  try {
    (void)pool.take(room->total);
    FAIL("it gave more than there is");
  } catch (const OutOfMemory& full) {
    CHECK(full.shortage().wanted >= room->total);
    CHECK(full.shortage().place == MemoryPlace{0});
    CHECK(full.shortage().room->total == room->total);
    CHECK(full.shortage().pool.bytes_in_use == mib);
    CHECK(full.shortage().planned == 123);
    const std::string text = full.what();
    CHECK(text.find("no memory left for it on GPU 0") != text.npos);
    CHECK(text.find("batch.micro") != text.npos);
  }
}

TEST_CASE("unused cached blocks are freed for a block of another size") {
  if (!open_device()) return;
  MemoryPool pool(device_memory());
  const auto room = device_memory()->room();
  REQUIRE(room);
  // Each block is larger than half of the free memory.
  { const auto gone = pool.take(room->free / 2 + mib); }
  const auto other = pool.take(room->free / 4 * 3);
  CHECK(pool.counters().bytes_reserved == other.get()->bytes);
}

TEST_CASE("tensors are copied to a device and back while the host continues") {
  const auto device = open_device();
  if (!device) return;
  MemoryPool memory(device_memory());
  Stream stream(memory, *device);
  DeviceProgress devices;
  DeviceWork work(devices);
  work.begin_job();
  const auto numbers = kernels::numbers(1000, 1);
  Tensor here = Tensor::make(stream.host_memory(), {1000});
  std::ranges::copy(numbers, here.f32());
  const Tensor there = stream.to_here(std::move(here));
  here = {};
  CHECK(there.place() == device->place());
  CHECK(stream.to_here(there).raw() == there.raw());
  // The device may not have read the host buffer yet, so a new tensor must get another one.
  Tensor other = Tensor::make(stream.host_memory(), {1000});
  std::ranges::fill(other.numbers<float>(), -1.0f);
  const Tensor back = stream.to_host(there);
  stream.wait();
  CHECK(std::ranges::equal(back.numbers<float>(), numbers));
  CHECK(stream.to_host(back).raw() == back.raw());
  work.end_job();
  work.idle();
}

TEST_CASE("imported device memory has the contents of the exported memory") {
  const auto device = open_device();
  if (!device) return;
  auto source = device_memory();
  const auto exported = kernels::cuda::exported(*source);
  REQUIRE(exported.ok());
  const ExportedMemory& memory = **exported;
  MemoryPool pool(std::move(source));
  Stream stream(pool, *device);
  // Larger than one piece.
  const auto blocks = {stream.make({1000}), stream.make({4'000'000}), stream.make({1000})};
  auto imported = kernels::cuda::import_memory(0, memory.reserved());
  REQUIRE(imported.ok());
  float number = 1;
  for (Tensor block : blocks) {
    kernels::fill(stream, number, block.f32(), block.count());
    const MemoryRange place{memory.offset_of(static_cast<std::byte*>(block.raw())), block.bytes()};
    while (!(*imported)->at(place)) {
      auto missing = place.offset;
      MemoryRange piece = memory.piece_at(missing);
      for (; (*imported)->at(piece); piece = memory.piece_at(missing))
        missing = piece.offset + piece.bytes;
      const auto file = memory.export_piece(piece.offset);
      REQUIRE(file.ok());
      REQUIRE((*imported)->add(piece, *file).ok());
      CHECK_FALSE((*imported)->add(piece, *file).ok());
    }
    Tensor copied = stream.make(block.shape());
    device->copy((*imported)->at(place), device->place(), copied.raw(), copied.bytes());
    const Tensor here = stream.to_host(copied);
    stream.wait();
    CHECK(std::ranges::count(here.numbers<float>(), number) == block.count());
    ++number;
  }
  CHECK_FALSE((*imported)->at({memory.reserved(), 1}));
  CHECK_FALSE((*imported)->at({memory.reserved() - 1, 1}));
}

}  // namespace
}  // namespace troupe

namespace troupe::actors {
namespace {

using kernels::device_memory;
using kernels::open_device;
using kernels::tensor;

Executor& on_device(World& world) { return world.make_executor(open_device(), device_memory()); }

TEST_CASE("a run allocates no device or host memory after its third step") {
  if (!open_device()) return;
  for (const std::string schedule : {"gpipe", "1f1b", "zb-h1", "seq"}) {
    auto piece = Piece::of("gpt2", {.schedule = schedule, .stages = 2, .micro_batches = 4});
    piece.steps = 6;
    LittleRun run(piece);
    Scene scene(run, 1, on_device);
    scene.world().play_in_order();
    scene.begin();
    const auto played = scene.finish();
    CHECK(played.outcome.how == Outcome::How::done);
    CHECK(played.weights == run.plainly());
    CHECK(played.bytes_left == 0);
    REQUIRE(played.allocations.size() == 6);
    CAPTURE(schedule, played.allocations);
    CHECK(played.allocations[5] == played.allocations[2]);
  }
}

TEST_CASE("reserved memory hardly grows with the number of micro-batches") {
  if (!open_device()) return;
  const auto reserved = [](int micro_batches) {
    const auto piece =
        Piece::of("resnet", {.schedule = "seq", .stages = 1, .micro_batches = micro_batches});
    const auto played = play_on_devices(piece);
    CHECK(played.how == Outcome::How::done);
    CHECK(played.weights == play_on_cores(piece).weights);
    return static_cast<double>(played.reserved);
  };
  CHECK(reserved(8) < 1.25 * reserved(2));
}

TEST_CASE("a run on devices that loses a player resumes from a checkpoint with the same bits") {
  if (!open_device()) return;
  auto piece = Piece::of("llama", {.schedule = "1f1b", .stages = 2, .micro_batches = 2});
  piece.steps = 5;
  piece.save_every = 2;
  LittleRun run(piece);
  Scene scene(run, 1, on_device);
  scene.begin();
  scene.play(300);
  REQUIRE_FALSE(scene.ended());
  for (const auto& one : scene.world().living())
    if (one.name == "stage actor") {
      caf_shim::kill(one.actor);
      break;
    }
  const auto played = scene.finish();
  CHECK(played.outcome.how == Outcome::How::done);
  CHECK(played.weights == run.plainly());
  CHECK(played.bytes_left == 0);
}

/// A memory source with a limited number of bytes.
class Part final : public MemorySource {
 public:
  explicit Part(std::size_t bytes) : left_(bytes) {}
  void* allocate(std::size_t bytes) override {
    return bytes <= left_ ? left_ -= bytes, all_->allocate(bytes) : nullptr;
  }
  void release(void* memory, std::size_t bytes) override {
    left_ += bytes;
    all_->release(memory, bytes);
  }
  MemoryPlace place() const override { return all_->place(); }
  std::optional<Room> room() const override { return Room{left_, all_->room()->total}; }

 private:
  std::unique_ptr<MemorySource> all_ = device_memory();
  std::size_t left_;
};

TEST_CASE("a run on a full device fails with the action, the GPU and the requested size") {
  if (!open_device()) return;
  auto piece = Piece::of("gpt2", {.schedule = "gpipe", .stages = 2, .micro_batches = 4});
  LittleRun run(piece);
  Scene scene(run, 1, [](World& world) -> Executor& {
    return world.make_executor(open_device(), std::make_unique<Part>(100'000));
  });
  scene.spec().strikes = 0;
  scene.begin();
  const auto played = scene.finish();
  CHECK(played.outcome.how == Outcome::How::failed);
  INFO(played.outcome.why);
  const auto has = [&](const char* part) {
    return played.outcome.why.find(part) != std::string::npos;
  };
  CHECK(has("device 0: step 1, 0F"));
  CHECK(has(": there is no memory left for it on GPU 0: wanted "));
}

TEST_CASE("messages to another process have tensors in host memory and keep their order") {
  if (!open_device()) return;
  World world(1);
  auto& executor = on_device(world);
  MemoryPool memory;
  std::vector<WireMessage> sent;
  const auto carry = [&](PlayerId, WireMessage wire_message) {
    sent.push_back(std::move(wire_message));
    return Status(Done{});
  };
  auto proxy = spawn_proxy(world.system(), {PlayerId::Kind::stage, 0},
                           {.carry = carry, .executors = {nullptr, &executor}}, memory);
  const auto numbers = kernels::numbers(100, 1);
  executor.post([&](Stream& stream) {
    caf_shim::post(proxy, Activation{{}, 1, tensor(stream, numbers, {100})});
    caf_shim::post(proxy, Taken{7});
    stream.wait();
  });
  world.settle();
  caf_shim::stop(proxy);
  proxy = nullptr;
  world.settle();
  REQUIRE(sent.size() == 2);
  CHECK(sent[0].type == Activation::type);
  REQUIRE(sent[0].tensors.size() == 1);
  CHECK(std::ranges::equal(sent[0].tensors[0].numbers<float>(), numbers));
  CHECK(sent[1].type == Taken::type);
  sent.clear();
}

}  // namespace
}  // namespace troupe::actors
