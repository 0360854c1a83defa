#include "tests/cuda_on_cores/block.h"

#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace cuda_on_cores {

thread_local dim3 gridDim, blockDim, blockIdx, threadIdx;

namespace {

constexpr std::size_t warp = 32;
constexpr std::size_t stack_bytes = std::size_t{128} << 10;

enum class At { ready, block_barrier, warp_barrier, end };

/// The target of a jump by the compiler's builtin, which needs no system call and no sanitizer
/// hook. A sanitizer's longjmp would clear its records of all stacks.
using Place = void* [5];
/// Must not be in the function that sets the target: the compiler requires that.
[[noreturn, gnu::noinline]] void go_to(Place& place) { __builtin_longjmp(place, 1); }

/// A thread with its own stack that runs one block after another. It is entered by its context
/// once, and then by jumps.
struct Fiber {
  ucontext_t context = {};
  Place place = {};
  std::unique_ptr<char[]> stack = std::make_unique_for_overwrite<char[]>(stack_bytes);
  bool is_begun = false;
  At at = At::ready;
};

/// The block that this core runs now.
struct Block {
  std::vector<std::unique_ptr<Fiber>> fibers;  // Kept for the next blocks.
  std::size_t threads = 0;
  std::size_t running = 0;
  Place scheduler = {};
  const std::function<void()>* kernel = nullptr;
  // Values at the block's barrier: of the threads that came so far, and of all.
  int said = 0, heard = 0;
  struct Exchanged {
    std::array<std::array<std::byte, most_exchanged>, warp> numbers;
  };
  // Two buffers of each warp, used alternately: a fast thread writes its next number before the
  // others have read the present one.
  std::vector<std::array<Exchanged, 2>> exchanged;
  std::vector<std::size_t> turns;  // Exchanges that each thread took part in.
  struct alignas(16) Shared {
    std::array<std::byte, 16> bytes;
  };
  std::vector<Shared> shared;  // Dynamic shared memory, and one more piece that stays `untouched`.

  void run_all();
  [[gnu::noinline]] void resume(std::size_t thread);
  [[gnu::noinline]] void pause(At at);
  bool release_block();
  bool release_warps();
};

thread_local Block the_block;

/// The content of uninitialized shared memory, which is NaN as a float.
constexpr std::byte untouched{0xff};

std::mutex allowed_mutex;
std::map<void (*)(), std::size_t> allowed;  // The most bytes of each kernel.

void be_thread() {
  for (;;) {
    (*the_block.kernel)();
    the_block.pause(At::end);
  }
}

void Block::resume(std::size_t thread) {
  running = thread;
  threadIdx = dim3(static_cast<unsigned>(thread), 0, 0);
  if (__builtin_setjmp(scheduler) != 0) return;
  Fiber& fiber = *fibers[thread];
  if (std::exchange(fiber.is_begun, true)) go_to(fiber.place);
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack.get();
  fiber.context.uc_stack.ss_size = stack_bytes;
  fiber.context.uc_link = nullptr;
  makecontext(&fiber.context, be_thread, 0);
  setcontext(&fiber.context);
}

void Block::pause(At at) {
  Fiber& fiber = *fibers[running];
  fiber.at = at;
  if (__builtin_setjmp(fiber.place) == 0) go_to(scheduler);
}

bool Block::release_block() {
  bool any = false;
  for (std::size_t t = 0; t < threads; ++t) {
    const At at = fibers[t]->at;
    if (at != At::block_barrier && at != At::end) return false;
    any = any || at == At::block_barrier;
  }
  if (!any) return false;
  heard = std::exchange(said, 0);
  for (std::size_t t = 0; t < threads; ++t)
    if (fibers[t]->at == At::block_barrier) fibers[t]->at = At::ready;
  return true;
}

/// Releases warps whose threads have all arrived, as CUDA requires.
bool Block::release_warps() {
  bool any = false;
  for (std::size_t first = 0; first < threads; first += warp) {
    const std::size_t end = std::min(first + warp, threads);
    const auto is_there = [&](std::size_t t) { return fibers[t]->at == At::warp_barrier; };
    bool all = true;
    for (std::size_t t = first; t < end; ++t) all = all && is_there(t);
    for (std::size_t t = first; all && t < end; ++t) fibers[t]->at = At::ready;
    any = any || all;
  }
  return any;
}

void Block::run_all() {
  while (fibers.size() < threads) fibers.push_back(std::make_unique<Fiber>());
  exchanged.resize((threads + warp - 1) / warp);
  turns.assign(threads, 0);
  for (std::size_t t = 0; t < threads; ++t) fibers[t]->at = At::ready;
  // Every other block runs from the last thread to the first.
  const bool backwards = blockIdx.x % 2 == 1;
  for (;;) {
    bool moved = false;
    for (std::size_t i = 0; i < threads; ++i) {
      const std::size_t t = backwards ? threads - 1 - i : i;
      if (fibers[t]->at != At::ready) continue;
      resume(t);
      moved = true;
    }
    moved = release_warps() || moved;
    moved = release_block() || moved;
    if (std::all_of(fibers.begin(), fibers.begin() + static_cast<std::ptrdiff_t>(threads),
                    [](const auto& fiber) { return fiber->at == At::end; }))
      return;
    if (moved) continue;
    std::fprintf(stderr, "threads of block (%u, %u) wait for one another in vain\n", blockIdx.x,
                 blockIdx.y);
    std::abort();
  }
}

}  // namespace

void run(const dim3& grid, const dim3& block, std::size_t shared,
         const std::function<void()>& kernel) {
  Block::Shared unused;
  unused.bytes.fill(untouched);
  const std::size_t pieces = (shared + unused.bytes.size() - 1) / unused.bytes.size();
  the_block.kernel = &kernel;
  the_block.threads = block.x;
  gridDim = grid;
  blockDim = block;
  for (unsigned y = 0; y < grid.y; ++y)
    for (unsigned x = 0; x < grid.x; ++x) {
      blockIdx = dim3(x, y, 0);
      the_block.shared.assign(pieces + 1, unused);
      the_block.run_all();
      if (the_block.shared.back().bytes == unused.bytes) continue;
      std::fprintf(stderr, "block (%u, %u) wrote behind its shared memory\n", x, y);
      std::abort();
    }
}

void allow_shared(void (*kernel)(), std::size_t bytes) {
  const std::lock_guard lock(allowed_mutex);
  auto& most = allowed[kernel];
  most = std::max(most, bytes);
}

bool may_share(void (*kernel)(), std::size_t bytes) {
  constexpr std::size_t usual = 48 << 10;
  if (bytes <= usual) return true;
  const std::lock_guard lock(allowed_mutex);
  const auto found = allowed.find(kernel);
  return found != allowed.end() && bytes <= found->second;
}

void* dynamic_shared() { return the_block.shared.data(); }

int wait_for_block(int value) {
  the_block.said |= value;
  the_block.pause(At::block_barrier);
  return the_block.heard;
}

int lane() { return static_cast<int>(the_block.running % warp); }

void share_bytes(const void* mine, void* all, std::size_t bytes) {
  const std::size_t thread = the_block.running;
  auto& numbers = the_block.exchanged[thread / warp][the_block.turns[thread]++ % 2].numbers;
  std::memcpy(numbers[thread % warp].data(), mine, bytes);
  the_block.pause(At::warp_barrier);
  auto* to = static_cast<std::byte*>(all);
  for (const auto& one : numbers) to = std::copy_n(one.data(), bytes, to);
}

void exchange_bytes(const void* mine, void* theirs, std::size_t bytes, int from) {
  const std::size_t thread = the_block.running;
  auto& numbers = the_block.exchanged[thread / warp][the_block.turns[thread]++ % 2].numbers;
  std::memcpy(numbers[thread % warp].data(), mine, bytes);
  the_block.pause(At::warp_barrier);
  std::memcpy(theirs, numbers[static_cast<std::size_t>(from)].data(), bytes);
}

}  // namespace cuda_on_cores
