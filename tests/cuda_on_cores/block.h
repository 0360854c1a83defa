#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>

/// How a grid of threads runs on one core.
namespace cuda_on_cores {

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

extern thread_local dim3 gridDim, blockDim, blockIdx, threadIdx;

/// Runs `kernel` by all threads of all blocks. Ends the process where threads of a block wait for
/// one another in vain.
void run(const dim3& grid, const dim3& block, const std::function<void()>& kernel);

// By a thread of a block.

/// Until all of the block have come here, or ended. Gives the "or" of what they say.
int wait_for_block(int value);
/// Its place among the 32 that go together.
int lane();
/// Gives `mine`, and gets what the thread at `from` of those 32 gives.
void exchange_bytes(const void* mine, void* theirs, std::size_t bytes, int from);
template <class T>
T exchange(T mine, int from) {
  T theirs;
  exchange_bytes(&mine, &theirs, sizeof(T), from);
  return theirs;
}

}  // namespace cuda_on_cores
