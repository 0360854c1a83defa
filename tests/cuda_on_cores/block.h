#pragma once

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

extern thread_local dim3 gridDim, blockDim, blockIdx, threadIdx;

/// Runs `kernel` in all threads of all blocks. Ends the process if threads of a block deadlock.
void run(const dim3& grid, const dim3& block, const std::function<void()>& kernel);

// Functions for a thread of a block.

/// Waits until all threads of the block have arrived or ended. Returns the "or" of their values.
int wait_for_block(int value);
/// Returns the thread's index in its warp of 32.
int lane();
/// Gives `mine` to the warp, and gets the value of the thread at `from`.
void exchange_bytes(const void* mine, void* theirs, std::size_t bytes, int from);
template <class T>
T exchange(T mine, int from) {
  T theirs;
  exchange_bytes(&mine, &theirs, sizeof(T), from);
  return theirs;
}

}  // namespace cuda_on_cores
