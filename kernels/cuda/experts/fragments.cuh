// The parts of matrices that a warp gives to tensor cores, and how it gets them. The played GPU has
// the same layout of numbers among threads, and sums in the order of depth.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/numbers.cuh"

namespace troupe::kernels::cuda {

/// Eight neighbouring numbers of 16 bits, which are copied and read together.
struct alignas(most_access) Chunk {
  std::uint16_t numbers[8];
};
constexpr int in_chunk = 8;

/// Begins to copy a chunk to shared memory. A chunk that does not exist is zeros.
__device__ inline void begin_copy(Chunk* to, const void* from, bool exists) {
#ifdef __CUDACC__
  const auto place = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(place), "l"(from),
               "r"(exists ? 16 : 0)
               : "memory");
#else
  *to = exists ? *static_cast<const Chunk*>(from) : Chunk{};
#endif
}
/// Ends a group of copies, which may be empty.
__device__ inline void end_group_of_copies() {
#ifdef __CUDACC__
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
/// Waits until at most `groups` of this thread's groups of copies are not done.
template <int groups>
__device__ void wait_for_copies() {
#ifdef __CUDACC__
  asm volatile("cp.async.wait_group %0;" ::"n"(groups) : "memory");
#endif
}

/// Four matrices of 8 x 8 numbers. Each thread has two neighbouring numbers of each: thread t those
/// of row t / 4 from column t % 4 * 2 on.
struct Fragment {
  unsigned pairs[4];
};

/// Reads four matrices. Thread t names row t % 8 of matrix t / 8. Transposed: a thread gets its
/// numbers of the transposed matrices.
template <bool is_transposed>
__device__ Fragment read_fragment(const Chunk* row) {
  Fragment read;
#ifdef __CUDACC__
  const auto place = static_cast<unsigned>(__cvta_generic_to_shared(row));
  unsigned(&to)[4] = read.pairs;
  if constexpr (is_transposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(place)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(place)
                 : "memory");
#else
  const int thread = cuda_on_cores::lane();
  const auto rows = cuda_on_cores::share(row);
  for (int matrix = 0; matrix < 4; ++matrix) {
    unsigned pair = 0;
    for (int i = 0; i < 2; ++i) {
      const int r = is_transposed ? thread % 4 * 2 + i : thread / 4;
      const int c = is_transposed ? thread / 4 : thread % 4 * 2 + i;
      const Chunk* const from = rows[matrix * 8 + r];
      pair |= unsigned{from->numbers[c]} << (16 * i);
    }
    read.pairs[matrix] = pair;
  }
#endif
  return read;
}

/// Adds a product of 16 x 16 and 16 x 8 numbers to sums of 16 x 8. a has the matrices (rows 0 to 7,
/// depth 0 to 7), (8 to 15, 0 to 7), (0 to 7, 8 to 15) and (8 to 15, 8 to 15), b the transposed
/// (depth 0 to 7) and (8 to 15). Thread t has the sums of row t / 4, columns t % 4 * 2 and the
/// next, and then the same of row t / 4 + 8.
template <class Number>
__device__ void add_product(float (&sums)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
#ifdef __CUDACC__
  if constexpr (std::is_same_v<Number, Float16>)
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  else
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
  const int thread = cuda_on_cores::lane();
  const auto half = [](unsigned pair, int i) {
    Number number;
    number.bits = static_cast<std::uint16_t>(pair >> (16 * i));
    return wide(number);
  };
  struct Pairs {
    unsigned a[4], b[2];
  };
  const Pairs mine{{a[0], a[1], a[2], a[3]}, {b0, b1}};
  const auto all = cuda_on_cores::share(mine);
  const Pairs* const rows = &all[thread / 4 * 4];
  const Pairs* const left = &all[thread % 4 * 2 * 4];
  const Pairs* const right = left + 4;
  for (int deep = 0; deep < 2; ++deep)
    for (int j = 0; j < 4; ++j)
      for (int i = 0; i < 2; ++i) {
        const float upper = half(rows[j].a[2 * deep], i), lower = half(rows[j].a[2 * deep + 1], i);
        const float one = half(left[j].b[deep], i), other = half(right[j].b[deep], i);
        sums[0] = fmaf(upper, one, sums[0]);
        sums[1] = fmaf(upper, other, sums[1]);
        sums[2] = fmaf(lower, one, sums[2]);
        sums[3] = fmaf(lower, other, sums[3]);
      }
#endif
}

}  // namespace troupe::kernels::cuda
