#include "core/memory/memory_pool.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "catch.h"
#include "core/memory/tensor.h"
#include "core/random.h"
#include "sanitized.h"

using namespace troupe;

TEST_CASE("a pool allocates nothing in steady state", "[core]") {
  MemoryPool pool;
  const auto step = [&] {
    std::vector<Tensor> tensors;
    for (int size : {1, 100, 1'000, 70'000}) tensors.push_back(Tensor::make(pool, {size, 3}));
  };
  step();
  const auto warm = pool.counters().allocations;
  for (int i = 0; i < 100; ++i) step();
  CHECK(pool.counters().allocations == warm);
  CHECK(pool.counters().bytes_in_use == 0);
}

TEST_CASE("a block returns to its pool when its last holder is destroyed", "[core]") {
  MemoryPool pool;
  Tensor a = Tensor::make(pool, {4, 4});
  {
    const Tensor rows = a.slice(1, 2);
    CHECK(rows.shape() == Shape{2, 4});
    CHECK(rows.f32() == a.f32() + 4);
    a = {};
    CHECK(pool.counters().bytes_in_use > 0);
  }
  CHECK(pool.counters().bytes_in_use == 0);
}

namespace {

/// Returns whether a block loses less than 64 bytes or than a fifth of itself, whichever is more.
bool loses_little(std::size_t wanted, std::size_t block) {
  return block >= wanted && block - wanted < std::max<std::size_t>(64, block / 5);
}

}  // namespace

TEST_CASE("a block loses less than 64 bytes or a fifth of its size", "[core]") {
  for (std::size_t bytes = 1; bytes <= 4'096; ++bytes) {
    CAPTURE(bytes);
    REQUIRE(loses_little(bytes, MemoryPool::size_of_block(bytes)));
  }
  // Sizes are rounded up to quarters of a power of two, so the worst ones lie just above these.
  for (std::size_t power = 4'096; power < std::size_t{1} << 40; power *= 2)
    for (std::size_t quarters = 4; quarters < 8; ++quarters)
      for (const std::size_t more : {0, 1, 2}) {
        const std::size_t bytes = power / 4 * quarters + more;
        CAPTURE(bytes);
        REQUIRE(loses_little(bytes, MemoryPool::size_of_block(bytes)));
      }
}

TEST_CASE("blocks are aligned and have the size that the pool states", "[core]") {
  MemoryPool pool;
  for (std::size_t bytes = 64; bytes < 100'000'000; bytes = bytes * 3 / 2 + 1) {
    const auto block = pool.take(bytes);
    CHECK(reinterpret_cast<std::uintptr_t>(block.get()->memory) % 64 == 0);
    CHECK(block.get()->bytes == MemoryPool::size_of_block(bytes));
  }
}

TEST_CASE("a pool recognizes its own blocks", "[core]") {
  MemoryPool one, other;
  const auto block = one.take(100);
  CHECK(one.owns(*block.get()));
  CHECK_FALSE(other.owns(*block.get()));
}

TEST_CASE("trim frees the blocks that nobody holds", "[core]") {
  MemoryPool pool;
  const auto kept = pool.take(1'000);
  { const auto dropped = pool.take(1'000'000); }
  pool.trim();
  CHECK(pool.counters().bytes_reserved == kept.get()->bytes);
}

TEST_CASE("blocks of host memory are aligned and do not overlap", "[core]") {
  struct Block {
    unsigned char* memory;
    std::size_t bytes;
    unsigned char mark;
  };
  const auto heap = host_memory();
  std::vector<Block> held;
  const auto release = [&](std::size_t i) {
    const auto [memory, bytes, mark] = held[i];
    CHECK(std::count(memory, memory + bytes, mark) == static_cast<std::ptrdiff_t>(bytes));
    heap->release(memory, bytes);
    held.erase(held.begin() + static_cast<std::ptrdiff_t>(i));
  };
  for (std::uint32_t i = 0; i < 400; ++i) {
    const auto [what, size, which, mark] = philox({i, 0, 0, 0}, {3, 4});
    if (what % 3 == 0 && !held.empty()) {
      release(which % held.size());
      continue;
    }
    // Most blocks are small; one in ten is larger than a huge page.
    const std::size_t bytes = 1 + size % (what % 10 == 0 ? 5'000'000 : 50'000);
    auto* memory = static_cast<unsigned char*>(heap->allocate(bytes));
    REQUIRE(memory);
    CHECK(reinterpret_cast<std::uintptr_t>(memory) % 64 == 0);
    std::fill_n(memory, bytes, static_cast<unsigned char>(mark));
    held.push_back({memory, bytes, static_cast<unsigned char>(mark)});
  }
  while (!held.empty()) release(held.size() - 1);
}

TEST_CASE("host memory refuses a block that is larger than all memory", "[core]") {
  if (is_sanitized) return;  // Sanitizers abort a process that allocates too much.
  CHECK_FALSE(host_memory()->allocate(std::size_t{1} << 60));
}

namespace {

/// Heap memory with a limit of `bytes`.
class Bounded final : public MemorySource {
 public:
  explicit Bounded(std::size_t bytes) : left_(bytes), total_(bytes) {}
  void* allocate(std::size_t bytes) override {
    if (bytes > left_) return nullptr;
    left_ -= bytes;
    return heap_->allocate(bytes);
  }
  void release(void* memory, std::size_t bytes) override {
    left_ += bytes;
    heap_->release(memory, bytes);
  }
  std::optional<Room> room() const override { return Room{left_, total_}; }

 private:
  std::unique_ptr<MemorySource> heap_ = host_memory();
  std::size_t left_, total_;
};

}  // namespace

TEST_CASE("a pool frees unused blocks before it runs out of memory", "[core]") {
  MemoryPool pool(std::make_unique<Bounded>(10'240));
  { const auto gone = pool.take(8'192); }
  CHECK(pool.take(4'096).get()->bytes == 4'096);
  CHECK(pool.counters().bytes_reserved == 4'096);
}

TEST_CASE("an out-of-memory error reports the request, the free memory and the plan", "[core]") {
  MemoryPool pool(std::make_unique<Bounded>(std::size_t{3} << 20));
  pool.expect(std::size_t{1} << 30);
  const auto kept = pool.take(std::size_t{1} << 20);
  std::string why;
  try {
    (void)pool.take(std::size_t{4} << 20);
  } catch (const std::bad_alloc& full) {
    why = full.what();
  }
  CHECK(why ==
        "there is no memory left for it on the host: wanted 4 MiB more, found "
        "0.002 GiB free of 0.003 GiB; this device holds 0.001 GiB of 0.001 GiB that it has taken, "
        "and the plan foresaw 1.000 GiB; take a smaller batch.micro, more pipeline.stages, or "
        "pipeline.recompute = true");
  CHECK(pool.counters().bytes_in_use == kept.get()->bytes);
}

TEST_CASE("a tensor over foreign memory returns the block to its owner", "[core]") {
  struct Owner final : MemoryOwner {
    void give_back(MemoryBlock* block) override { given_back = block; }
    MemoryBlock* given_back = nullptr;
  } owner;
  alignas(64) std::byte memory[256];
  MemoryBlock block{memory, sizeof memory, &owner, 0, {}};
  Tensor tensor = Tensor::over(BlockHandle(&block), 64, {2, 8}, DType::f32);
  CHECK(tensor.raw() == memory + 64);
  CHECK(tensor.block() == &block);
  Tensor row = tensor.slice(1, 1);
  tensor = {};
  CHECK(owner.given_back == nullptr);
  CHECK(row.raw() == memory + 64 + 32);
  row = {};
  CHECK(owner.given_back == &block);
}
