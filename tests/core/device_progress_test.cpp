#include "core/memory/device_progress.h"

#include <array>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <functional>
#include <random>
#include <thread>
#include <utility>

#include "catch.h"
#include "core/memory/memory_pool.h"

using namespace troupe;

namespace {

constexpr std::size_t bytes = 256;

/// Runs `body` on a new thread whose only work is for a device.
template <class Body>
void beside(DeviceProgress& devices, Body body) {
  std::thread([&] {
    DeviceWork work(devices);
    body(work);
  }).join();
}

const std::byte* place_of(const BlockHandle& block) { return block.get()->memory; }

/// A thread that gives work to a device, one call of play() at a time.
class Player {
 public:
  explicit Player(DeviceProgress& devices) : thread_([this, &devices] { run(devices); }) {}
  ~Player() {
    turn_ = Turn::to_end;
    turn_.notify_all();
    thread_.join();
  }
  Player(const Player&) = delete;
  Player& operator=(const Player&) = delete;

  /// Runs `act` on the thread and returns when it has ended.
  void play(std::function<void(DeviceWork&)> act) {
    act_ = std::move(act);
    turn_ = Turn::to_act;
    turn_.notify_all();
    turn_.wait(Turn::to_act);
  }
  std::uint64_t number() {
    std::uint64_t number = 0;
    play([&](DeviceWork& work) { number = work.number(); });
    return number;
  }

 private:
  enum class Turn : std::uint8_t { to_rest, to_act, to_end };

  void run(DeviceProgress& devices) {
    DeviceWork work(devices);
    for (;;) {
      turn_.wait(Turn::to_rest);
      if (turn_ == Turn::to_end) return;
      act_(work);
      turn_ = Turn::to_rest;
      turn_.notify_all();
    }
  }

  std::function<void(DeviceWork&)> act_;
  std::atomic<Turn> turn_ = Turn::to_rest;
  std::thread thread_;
};

}  // namespace

TEST_CASE("the thread of the only device reuses released blocks at once", "[core]") {
  const auto devices = std::make_shared<DeviceProgress>();
  MemoryPool pool(host_memory(), devices);
  beside(*devices, [&](DeviceWork& work) {
    for (int job = 0; job < 3; ++job) {
      work.begin_job();
      for (int i = 0; i < 3; ++i) (void)pool.take(bytes);
      (void)work.end_job();
    }
    CHECK(pool.counters().allocations == 1);
    // The device has not reported this work as done, so no other thread may get the block.
    std::thread([&] { (void)pool.take(bytes); }).join();
    CHECK(pool.counters().allocations == 2);
    work.idle();
  });
}

TEST_CASE("other threads reuse a block once every device has done its work", "[core]") {
  const auto devices = std::make_shared<DeviceProgress>();
  MemoryPool pool(host_memory(), devices);
  auto block = pool.take(bytes);
  const auto* place = place_of(block);
  beside(*devices, [&](DeviceWork& work) {
    work.begin_job();
    const auto first = work.end_job();
    work.begin_job();  // The block is read here; the thread holds no handle of its own.
    const auto second = work.end_job();
    // A thread without a device drops the last handle.
    std::thread([&] { block = {}; }).join();
    work.begin_job();
    const auto third = work.end_job();
    work.done(first);
    beside(*devices, [&](DeviceWork& other) {
      other.begin_job();
      CHECK(place_of(pool.take(bytes)) != place);
      (void)other.end_job();
      other.idle();
    });
    work.done(second);
    std::thread([&] { CHECK(place_of(pool.take(bytes)) != place); }).join();
    work.done(third);
    std::thread([&] { CHECK(place_of(pool.take(bytes)) == place); }).join();
    work.idle();
  });
}

TEST_CASE("a device reuses at once a block that no other device has seen", "[core]") {
  const auto devices = std::make_shared<DeviceProgress>();
  MemoryPool pool(host_memory(), devices);
  Player reader(*devices), maker(*devices);
  BlockHandle block;
  const std::byte* place = nullptr;
  reader.play([](DeviceWork& work) {
    work.begin_job();
    (void)work.end_job();
  });
  maker.play([&](DeviceWork& work) {
    work.begin_job();
    block = pool.take(bytes);
    place = place_of(block);
    (void)work.end_job();
    work.begin_job();
  });
  const bool is_dropped_elsewhere = GENERATE(false, true);
  if (is_dropped_elsewhere)
    block = {};
  else
    maker.play([&](DeviceWork&) { block = {}; });
  // Only the block's own device can know that its work is done.
  reader.play([&](DeviceWork&) { CHECK(place_of(pool.take(bytes)) != place); });
  maker.play([&](DeviceWork& work) {
    CHECK(place_of(pool.take(bytes)) == place);
    work.idle();
  });
  reader.play([](DeviceWork& work) { work.idle(); });
}

TEST_CASE("a block that another device saw is reused once that device has read it", "[core]") {
  const auto devices = std::make_shared<DeviceProgress>();
  MemoryPool pool(host_memory(), devices);
  Player reader(*devices), maker(*devices);
  BlockHandle block;
  std::vector<BlockHandle> others;  // Held, so that the pool does not hand them out again.
  const std::byte* place = nullptr;
  DeviceProgress::Moment read = 0;
  const auto takes_it = [&] { return place_of(others.emplace_back(pool.take(bytes))) == place; };
  maker.play([&](DeviceWork& work) {
    work.begin_job();
    block = pool.take(bytes);
    place = place_of(block);
    (void)work.end_job();
    work.begin_job();
  });
  reader.play([&](DeviceWork& work) {
    work.begin_job();
    DeviceWork::see(*block.get());
    read = work.end_job();
    work.begin_job();  // Later jobs do not use the block.
    (void)work.end_job();
  });
  maker.play([&](DeviceWork&) {
    block = {};
    CHECK_FALSE(takes_it());
  });
  SECTION("as it says itself") {
    reader.play([&](DeviceWork& work) { work.done(read); });
    maker.play([&](DeviceWork&) { CHECK(takes_it()); });
  }
  SECTION("or as the device follows it") {
    maker.play([&](DeviceWork& work) {
      work.follow(reader.number(), read - 1);
      CHECK_FALSE(takes_it());
      work.follow(reader.number(), read);
      CHECK(takes_it());
    });
  }
  others.clear();
  for (auto* player : {&reader, &maker}) player->play([](DeviceWork& work) { work.idle(); });
}

TEST_CASE("a device that catches up within a job keeps the blocks that the job has seen",
          "[core]") {
  const auto devices = std::make_shared<DeviceProgress>();
  MemoryPool pool(host_memory(), devices);
  Player reader(*devices), maker(*devices);
  BlockHandle block, other;
  const std::byte* place = nullptr;
  maker.play([&](DeviceWork& work) {
    work.begin_job();
    block = pool.take(bytes);
    place = place_of(block);
  });
  DeviceProgress::Moment read = 0;
  reader.play([&](DeviceWork& work) {
    work.begin_job();
    DeviceWork::see(*block.get());
    work.caught_up();  // The kernel that reads the block is launched only after this.
  });
  block = {};
  maker.play([&](DeviceWork&) {
    other = pool.take(bytes);
    CHECK(place_of(other) != place);
  });
  reader.play([&](DeviceWork& work) {
    read = work.end_job();
    work.done(read);
  });
  maker.play([&](DeviceWork& work) {
    CHECK(place_of(pool.take(bytes)) == place);
    other = {};
    work.idle();
  });
  reader.play([](DeviceWork& work) { work.idle(); });
}

TEST_CASE("trim keeps a block until work that follows another device is done", "[core]") {
  const auto devices = std::make_shared<DeviceProgress>();
  MemoryPool pool(host_memory(), devices);
  Player reader(*devices), maker(*devices);
  BlockHandle block;
  DeviceProgress::Moment read = 0;
  maker.play([&](DeviceWork& work) {
    work.begin_job();
    block = pool.take(bytes);
    (void)work.end_job();
  });
  reader.play([&](DeviceWork& work) {
    work.begin_job();
    DeviceWork::see(*block.get());
    read = work.end_job();
  });
  const auto reader_number = reader.number();
  maker.play([&](DeviceWork& work) {
    work.begin_job();
    block = {};
    const auto dropped = work.end_job();
    work.begin_job();
    work.follow(reader_number, read);
    const auto followed = work.end_job();
    work.done(dropped);
    pool.trim();
    CHECK(pool.counters().bytes_reserved > 0);
    work.done(followed);
    pool.trim();
    CHECK(pool.counters().bytes_reserved == 0);
  });
  for (auto* player : {&reader, &maker}) player->play([](DeviceWork& work) { work.idle(); });
}

TEST_CASE("trim keeps blocks that a device may still use", "[core]") {
  const auto devices = std::make_shared<DeviceProgress>();
  MemoryPool pool(host_memory(), devices);
  beside(*devices, [&](DeviceWork& work) {
    work.begin_job();
    (void)pool.take(bytes);
    (void)work.end_job();
    pool.trim();
    CHECK(pool.counters().bytes_reserved > 0);
    work.idle();
    pool.trim();
    CHECK(pool.counters().bytes_reserved == 0);
  });
}

namespace {

constexpr int players = 3;

/// The contents of a block: for each device, the number of reads to come.
struct Reads {
  std::array<std::atomic<int>, players> to_come;
};

class Zeroes final : public MemorySource {
 public:
  void* allocate(std::size_t size) override {
    void* memory = std::aligned_alloc(64, size);
    new (memory) Reads{};
    return memory;
  }
  void release(void* memory, std::size_t) override { std::free(memory); }
};

/// A table of blocks that threads exchange.
struct Table {
  std::mutex mutex;
  std::array<BlockHandle, 8> places;

  BlockHandle exchange(std::size_t at, BlockHandle block) {
    const std::lock_guard lock(mutex);
    return std::exchange(places[at], std::move(block));
  }
};

Reads& reads_of(const BlockHandle& block) { return *reinterpret_cast<Reads*>(block.get()->memory); }

/// Plays one thread whose device is up to three jobs behind.
void play(int player, DeviceProgress& devices, std::deque<MemoryPool>& pools, Table& table,
          std::atomic<int>& too_early) {
  std::mt19937 random(static_cast<unsigned>(player));
  DeviceWork work(devices);
  struct Job {
    std::vector<Reads*> reads;
    DeviceProgress::Moment moment;
  };
  std::deque<Job> queue;
  const auto mine = static_cast<std::size_t>(player);
  const auto finish_first = [&] {
    for (auto* read : queue.front().reads) --read->to_come[mine];
    work.done(queue.front().moment);
    queue.pop_front();
    if (queue.empty()) work.idle();
  };
  for (int i = 0; i < 4'000; ++i) {
    work.begin_job();
    Job job;
    const auto read = [&](const BlockHandle& block) {
      DeviceWork::see(*block.get());
      ++reads_of(block).to_come[mine];
      job.reads.push_back(&reads_of(block));
    };
    for (int k = 0; k < 3; ++k) {
      auto block = pools[mine].take(bytes);
      for (std::size_t other = 0; other < players; ++other)
        if (other != mine && reads_of(block).to_come[other] != 0) ++too_early;
      read(block);
      if (random() % 2 == 0) continue;  // The block returns to the pool.
      if (const auto theirs = table.exchange(random() % 8, std::move(block))) read(theirs);
    }
    job.moment = work.end_job();
    queue.push_back(std::move(job));
    while (queue.size() > 3 || (!queue.empty() && random() % 3 == 0)) finish_first();
  }
  while (!queue.empty()) finish_first();
}

}  // namespace

TEST_CASE("a pool hands out no block that another device has yet to read", "[core]") {
  const auto devices = std::make_shared<DeviceProgress>();
  std::deque<MemoryPool> pools;
  for (int i = 0; i < players; ++i) pools.emplace_back(std::make_unique<Zeroes>(), devices);
  std::atomic<int> too_early = 0;
  {
    Table table;
    std::vector<std::thread> threads;
    threads.reserve(players + 1);
    for (int i = 0; i < players; ++i)
      threads.emplace_back([&, i] { play(i, *devices, pools, table, too_early); });
    // A CPU thread that drops the blocks it finds.
    threads.emplace_back([&] {
      for (std::size_t i = 0; i < 20'000; ++i) (void)table.exchange(i % 8, {});
    });
    for (auto& thread : threads) thread.join();
  }
  CHECK(too_early == 0);
  for (const auto& pool : pools) {
    CHECK(pool.counters().bytes_in_use == 0);
    CHECK(pool.counters().allocations < 12'000);  // Far fewer than blocks were taken.
  }
}
