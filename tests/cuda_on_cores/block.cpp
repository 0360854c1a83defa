#include "tests/cuda_on_cores/block.h"

#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace cuda_on_cores {

constinit thread_local dim3 gridDim, blockDim, blockIdx, threadIdx;

namespace {

constexpr std::size_t warp = 32;
constexpr std::size_t stack_bytes = std::size_t{128} << 10;
constexpr std::size_t page_bytes = 4096;
// The distance of two stacks' tops within their pages. Without it the tops compete for the same few
// lines of the cache.
constexpr std::size_t stagger_bytes = 320;

enum class At : std::uint8_t { ready, block_barrier, warp_barrier, end };

/// The target of a jump by the compiler's builtin, which needs no system call and no sanitizer
/// hook. A sanitizer's longjmp would clear its records of all stacks.
using Place = void* [5];
/// Must not be in the function that sets the target: the compiler requires that.
[[noreturn, gnu::noinline]] void go_to(Place& place) { __builtin_longjmp(place, 1); }

/// A stack on which threads run, one after another. It is entered by its context once, and then by
/// jumps.
struct Fiber {
  ucontext_t context = {};
  Place place = {};
  std::unique_ptr<char[]> stack = std::make_unique_for_overwrite<char[]>(stack_bytes);
  bool is_begun = false;
};

/// The block that this core runs now. A thread runs until it waits or ends. A fiber whose thread
/// has ended takes the next one, so threads that never wait need a single fiber.
struct Block {
  struct Thread {
    Fiber* fiber = nullptr;
    At at = At::ready;
  };

  std::vector<std::unique_ptr<Fiber>> fibers;  // Kept for the next blocks.
  std::vector<Thread> threads;
  std::size_t begun = 0, ended = 0;  // Numbers of threads.
  std::size_t running = 0;
  bool is_backwards = false;
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

  void run_all(std::size_t count);
  std::size_t in_turn(std::size_t i) const { return is_backwards ? threads.size() - 1 - i : i; }
  void begin_next(Fiber& fiber);
  void begin_all();
  void set_running(std::size_t thread);
  [[gnu::noinline]] void resume(Fiber& fiber);
  [[gnu::noinline]] void pause(At at);
  [[gnu::noinline]] void end_thread();
  bool release_block();
  bool release_warps();
};

/// The block of this core, set while it runs one.
constinit thread_local Block* the_block = nullptr;

/// The content of uninitialized shared memory, which is NaN as a float.
constexpr std::byte untouched{0xff};

std::mutex allowed_mutex;
std::map<void (*)(), std::size_t> allowed;  // The most bytes of each kernel.

void be_threads() {
  for (;;) {
    (*the_block->kernel)();
    the_block->end_thread();
  }
}

void Block::set_running(std::size_t thread) {
  running = thread;
  threadIdx = dim3(static_cast<unsigned>(thread), 0, 0);
}

void Block::resume(Fiber& fiber) {
  if (__builtin_setjmp(scheduler) != 0) return;
  if (std::exchange(fiber.is_begun, true)) go_to(fiber.place);
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack.get();
  fiber.context.uc_stack.ss_size = stack_bytes - fibers.size() * stagger_bytes % page_bytes;
  fiber.context.uc_link = nullptr;
  makecontext(&fiber.context, be_threads, 0);
  setcontext(&fiber.context);
}

void Block::pause(At at) {
  threads[running].at = at;
  Fiber& fiber = *threads[running].fiber;
  if (__builtin_setjmp(fiber.place) == 0) go_to(scheduler);
}

/// Ends the running thread. Returns when its fiber has another one to run.
void Block::end_thread() {
  auto& [fiber, at] = threads[running];
  at = At::end;
  ++ended;
  if (begun < threads.size()) return begin_next(*fiber);
  if (__builtin_setjmp(fiber->place) == 0) go_to(scheduler);
}

/// Gives a fiber the next thread that has not begun.
void Block::begin_next(Fiber& fiber) {
  set_running(in_turn(begun++));
  threads[running].fiber = &fiber;
}

void Block::begin_all() {
  for (std::size_t used = 0; begun < threads.size(); ++used) {
    if (used == fibers.size()) fibers.push_back(std::make_unique<Fiber>());
    begin_next(*fibers[used]);
    resume(*fibers[used]);
  }
}

bool Block::release_block() {
  bool any = false;
  for (const auto& thread : threads) {
    if (thread.at != At::block_barrier && thread.at != At::end) return false;
    any = any || thread.at == At::block_barrier;
  }
  if (!any) return false;
  heard = std::exchange(said, 0);
  for (auto& thread : threads)
    if (thread.at == At::block_barrier) thread.at = At::ready;
  return true;
}

/// Releases warps whose threads have all arrived, as CUDA requires.
bool Block::release_warps() {
  bool any = false;
  for (std::size_t first = 0; first < threads.size(); first += warp) {
    const auto of_warp = std::span(threads).subspan(first, std::min(warp, threads.size() - first));
    if (!std::ranges::all_of(
            of_warp, [](At at) { return at == At::warp_barrier; }, &Thread::at))
      continue;
    for (auto& thread : of_warp) thread.at = At::ready;
    any = true;
  }
  return any;
}

void Block::run_all(std::size_t count) {
  threads.assign(count, {});
  exchanged.resize((count + warp - 1) / warp);
  turns.assign(count, 0);
  begun = ended = 0;
  // Every other block runs from the last thread to the first.
  is_backwards = blockIdx.x % 2 == 1;
  begin_all();
  while (ended < count) {
    const bool some_warps = release_warps();
    if (!release_block() && !some_warps) {
      std::fprintf(stderr, "threads of block (%u, %u) wait for one another in vain\n", blockIdx.x,
                   blockIdx.y);
      std::abort();
    }
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t t = in_turn(i);
      if (threads[t].at != At::ready) continue;
      set_running(t);
      resume(*threads[t].fiber);
    }
  }
}

}  // namespace

void run(const dim3& grid, const dim3& block, std::size_t shared,
         const std::function<void()>& kernel) {
  thread_local Block of_this_core;
  the_block = &of_this_core;
  Block::Shared unused;
  unused.bytes.fill(untouched);
  const std::size_t pieces = (shared + unused.bytes.size() - 1) / unused.bytes.size();
  the_block->kernel = &kernel;
  gridDim = grid;
  blockDim = block;
  for (unsigned y = 0; y < grid.y; ++y)
    for (unsigned x = 0; x < grid.x; ++x) {
      blockIdx = dim3(x, y, 0);
      the_block->shared.assign(pieces + 1, unused);
      the_block->run_all(block.x);
      if (the_block->shared.back().bytes == unused.bytes) continue;
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

void* dynamic_shared() { return the_block->shared.data(); }

int wait_for_block(int value) {
  the_block->said |= value;
  the_block->pause(At::block_barrier);
  return the_block->heard;
}

int lane() { return static_cast<int>(the_block->running % warp); }

void share_bytes(const void* mine, void* all, std::size_t bytes) {
  const std::size_t thread = the_block->running;
  auto& numbers = the_block->exchanged[thread / warp][the_block->turns[thread]++ % 2].numbers;
  std::memcpy(numbers[thread % warp].data(), mine, bytes);
  the_block->pause(At::warp_barrier);
  auto* to = static_cast<std::byte*>(all);
  for (const auto& one : numbers) to = std::copy_n(one.data(), bytes, to);
}

void exchange_bytes(const void* mine, void* theirs, std::size_t bytes, int from) {
  const std::size_t thread = the_block->running;
  auto& numbers = the_block->exchanged[thread / warp][the_block->turns[thread]++ % 2].numbers;
  std::memcpy(numbers[thread % warp].data(), mine, bytes);
  the_block->pause(At::warp_barrier);
  std::memcpy(theirs, numbers[static_cast<std::size_t>(from)].data(), bytes);
}

}  // namespace cuda_on_cores
