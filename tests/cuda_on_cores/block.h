#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>

/// Runs a grid of threads on one core.
namespace cuda_on_cores {

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

extern constinit thread_local dim3 gridDim, blockDim, blockIdx, threadIdx;

/// Runs `kernel` in all threads of all blocks, which have `shared` bytes of dynamic shared memory.
/// Ends the process if threads of a block deadlock or write behind that memory.
void run(const dim3& grid, const dim3& block, std::size_t shared,
         const std::function<void()>& kernel);

/// The most dynamic shared memory of a block.
constexpr int most_shared_bytes = 227 << 10;
/// Allows a kernel to use so much dynamic shared memory. Without this it may use 48 KiB.
void allow_shared(void (*kernel)(), std::size_t bytes);
bool may_share(void (*kernel)(), std::size_t bytes);

// Functions for a thread of a block.

/// Waits until all threads of the block have arrived or ended. Returns the "or" of their values.
int wait_for_block(int value);
/// Returns the block's dynamic shared memory, aligned to 16 bytes.
void* dynamic_shared();
/// Returns the thread's index in its warp of 32.
int lane();
/// The most bytes of a value that threads of a warp exchange.
constexpr std::size_t most_exchanged = 32;
/// Gives `mine` to the warp, and gets the values of all threads, one after the other.
void share_bytes(const void* mine, void* all, std::size_t bytes);
template <class T>
std::array<T, 32> share(T mine) {
  static_assert(sizeof(T) <= most_exchanged);
  std::array<T, 32> all;
  share_bytes(&mine, all.data(), sizeof(T));
  return all;
}
/// Gives `mine` to the warp, and gets the value of the thread at `from`.
void exchange_bytes(const void* mine, void* theirs, std::size_t bytes, int from);
template <class T>
T exchange(T mine, int from) {
  static_assert(sizeof(T) <= most_exchanged);
  T theirs;
  exchange_bytes(&mine, &theirs, sizeof(T), from);
  return theirs;
}

}  // namespace cuda_on_cores
