#include "kernels/cuda/between_layers.h"
#include "kernels/cuda/math.cuh"
#include "kernels/cuda/numbers.cuh"
#include "kernels/cuda/tile.cuh"

namespace troupe::kernels::cuda {
namespace {

// As in kernels/cpu/softmax_cross_entropy.cpp, the terms of a chunk are relative to its greatest
// number, and each chunk is summed in lanes.
constexpr int most_chunks = 64;
constexpr std::int64_t least_chunk = 4096;

template <class Number>
struct Rows {
  const Number* logits;
  const std::int32_t* targets;
  float* losses;
  Number* dlogits;
  std::int64_t classes, chunk;
  Changing<float> scale;
  std::int64_t ignore;  // As in CrossEntropyForm, or no target at all.
  float smoothing, z;

  /// The weight of each class in the gradient, besides the target's own.
  __device__ float of_each() const {
    return smoothing / static_cast<float>(classes) * scale.read();
  }
  __device__ float of_target() const { return (1 - smoothing) * scale.read(); }
};

/// The loss of a row, and the gradient of its logsumexp.
struct RowLoss {
  float loss, slope;
};

/// `log_sum` is the logarithm of the sum of exponentials relative to `shift`.
template <class Number>
__device__ RowLoss loss_of(const Rows<Number>& all, float log_sum, float shift, float target_logit,
                           float all_logits) {
  RowLoss row{log_sum + (shift - target_logit), all.scale.read()};
  if (all.smoothing > 0) {
    const float mean = all_logits / static_cast<float>(all.classes);
    row.loss = (1 - all.smoothing) * row.loss + all.smoothing * (log_sum + (shift - mean));
  }
  if (all.z > 0) {
    const float logsumexp = log_sum + shift;
    row.loss += all.z * (logsumexp * logsumexp);
    row.slope *= 1 + 2 * all.z * logsumexp;
  }
  return row;
}

/// Computes one row per block, with sixteen threads per chunk. Computes the terms again for the
/// gradient, so that nothing is stored or rounded in between.
template <class Number>
__global__ void softmax_row(Rows<Number> all) {
  __shared__ float shifts[most_chunks];
  __shared__ float sums[most_chunks];
  __shared__ float factors[most_chunks];
  __shared__ float logit_sums[most_chunks];
  const std::int64_t row = blockIdx.x;
  const Number* logits = all.logits + row * all.classes;
  const std::int64_t target = all.targets[row];
  Number* dlogits = all.dlogits ? all.dlogits + row * all.classes : nullptr;
  if (target == all.ignore) {
    if (threadIdx.x == 0) all.losses[row] = 0;
    if (dlogits)
      for (std::int64_t i = threadIdx.x; i < all.classes; i += threads_in_block)
        dlogits[i] = narrow<Number>(0.0f);
    return;
  }
  const float target_logit = wide(logits[target]);
  const int chunks = static_cast<int>((all.classes + all.chunk - 1) / all.chunk);
  const unsigned lane = threadIdx.x % lanes;
  const float infinity = __int_as_float(0x7f800000);
  __syncthreads();  // All threads must read the target's logit before it is overwritten.

  // All groups loop equally often, because they take part in folds.
  for (int begin = 0; begin < chunks; begin += static_cast<int>(lane_groups)) {
    const int mine = begin + static_cast<int>(threadIdx.x / lanes);
    const std::int64_t first = mine * all.chunk;
    const std::int64_t end = mine < chunks ? std::min(first + all.chunk, all.classes) : first;
    float most = -infinity;
#pragma unroll 8
    for (std::int64_t i = first + lane; i < end; i += lanes)
      most = Greater()(most, wide(logits[i]));
    most = fold(most, Greater());
    const float shift = most == -infinity ? -0x1.fffffep+127f : most;
    float sum = 0;
#pragma unroll 4
    for (std::int64_t i = first + lane; i < end; i += lanes)
      sum += exp_nonpositive(wide(logits[i]) + -shift);
    sum = sum_of_lanes(sum);
    if (all.smoothing > 0) {
      float logit_sum = 0;
#pragma unroll 4
      for (std::int64_t i = first + lane; i < end; i += lanes) logit_sum += wide(logits[i]);
      logit_sum = sum_of_lanes(logit_sum);
      if (lane == 0 && mine < chunks) logit_sums[mine] = logit_sum;
    }
    if (lane == 0 && mine < chunks) {
      shifts[mine] = shift;
      sums[mine] = sum;
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    float shift = -infinity, sum = 0;
    for (int i = 0; i < chunks; ++i) {
      if (shifts[i] > shift) {
        sum *= exp_of(shift - shifts[i]);
        shift = shifts[i];
      }
      sum += sums[i] * exp_of(shifts[i] - shift);
    }
    float all_logits = 0;
    if (all.smoothing > 0)
      for (int i = 0; i < chunks; ++i) all_logits += logit_sums[i];
    const RowLoss found = loss_of(all, log_of(sum), shift, target_logit, all_logits);
    all.losses[row] = found.loss;
    for (int i = 0; i < chunks; ++i) factors[i] = exp_of(shifts[i] - shift) / sum * found.slope;
  }
  __syncthreads();
  if (!dlogits) return;
  const float of_each = all.of_each(), of_target = all.of_target();
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const float minus_shift = -shifts[chunk], factor = factors[chunk];
    const std::int64_t first = chunk * all.chunk, end = std::min(first + all.chunk, all.classes);
    for (std::int64_t i = first + threadIdx.x; i < end; i += threads_in_block) {
      const float softmax = exp_nonpositive(wide(logits[i]) + minus_shift) * factor - of_each;
      dlogits[i] = narrow<Number>(i == target ? softmax - of_target : softmax);
    }
  }
}

// Long rows are kept in shared memory in fp32, so that a row is read once, its exponentials are
// computed once, and its gradient is written once.

constexpr unsigned threads_of_row = 512;
constexpr std::int64_t kept_chunk = least_chunk;
/// More chunks than the shared memory of any GPU holds.
constexpr int most_kept_chunks = 16;
/// Room for the kernel's static shared memory.
constexpr std::size_t static_shared_bytes = 1024;
/// With fewer classes, threads would have nothing to do.
constexpr std::int64_t least_kept_classes = 8192;

/// A pack as it lies in memory. Four registers hold it, whereas each number of a Pack takes one.
struct alignas(most_access) Words {
  std::uint32_t words[4];
};

template <class Number>
__device__ Words read_words(const Number* from, std::int64_t i) {
  return *reinterpret_cast<const Words*>(from + i);
}

template <class Number>
__device__ Pack<float, in_access<Number>> wide_numbers(const Words& words) {
  Pack<float, in_access<Number>> x;
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if constexpr (std::is_same_v<Number, float>) {
      x[i] = __uint_as_float(words.words[i]);
    } else {
      x[2 * i] = wide(Number{static_cast<std::uint16_t>(words.words[i])});
      x[2 * i + 1] = wide(Number{static_cast<std::uint16_t>(words.words[i] >> 16)});
    }
  return x;
}

/// The layout of a row in shared memory. A pack of numbers becomes one or two pieces of four
/// floats; the second pieces lie in a plane of their own. Padding between chunks and between planes
/// spreads over all banks the 32 numbers that a warp sums at once.
template <class Number>
struct KeptRow {
  static constexpr int planes = in_access<Number> / 4;
  static constexpr std::int64_t packs_in_chunk = kept_chunk / in_access<Number>;
  static constexpr std::int64_t padding = 4;

  std::int64_t packs;

  __host__ __device__ std::int64_t pieces_in_plane() const {
    const std::int64_t pieces = packs + (packs / packs_in_chunk + 1) * padding;
    return (pieces + 7) / 8 * 8 + 2;
  }
  std::size_t bytes() const {
    return static_cast<std::size_t>(planes * pieces_in_plane()) * sizeof(float4);
  }

  __device__ static int place_of(int pack) {
    return pack + pack / static_cast<int>(packs_in_chunk) * static_cast<int>(padding);
  }
  __device__ Pack<float, in_access<Number>> read(const float4* row, int pack) const {
    Pack<float, in_access<Number>> x;
    for (int p = 0; p < planes; ++p) {
      const float4 piece = row[p * static_cast<int>(pieces_in_plane()) + place_of(pack)];
      x[4 * p] = piece.x, x[4 * p + 1] = piece.y, x[4 * p + 2] = piece.z, x[4 * p + 3] = piece.w;
    }
    return x;
  }
  __device__ void write(float4* row, int pack, const Pack<float, in_access<Number>>& x) const {
    for (int p = 0; p < planes; ++p)
      row[p * static_cast<int>(pieces_in_plane()) + place_of(pack)] = {x[4 * p], x[4 * p + 1],
                                                                       x[4 * p + 2], x[4 * p + 3]};
  }
  /// Returns where the numbers of a lane of a chunk begin. They are `stride` floats apart.
  __device__ const float* lane_of(const float4* row, int chunk, int lane) const {
    const int pack = chunk * static_cast<int>(packs_in_chunk) + lane / in_access<Number>;
    const int plane = lane % in_access<Number> / 4;
    return &row[plane * static_cast<int>(pieces_in_plane()) + place_of(pack)].x + lane % 4;
  }
  static constexpr int stride = static_cast<int>(lanes) / planes;
};

/// Returns an integer in the order of floats; NaN must not occur. The function is its own
/// inverse, apart from the types.
__device__ inline int ordered(int bits) { return bits ^ ((bits >> 31) & 0x7fffffff); }

/// The chunks of the present row, shared by the threads of a block.
struct RowState {
  int keys[most_kept_chunks];  // The greatest number of each chunk, as ordered().
  float sums[most_kept_chunks];
  // Factors by which a chunk's shift changes the sum of the chunks before, its own sum, and its
  // terms.
  float of_former[most_kept_chunks], of_own[most_kept_chunks], of_terms[most_kept_chunks];
  float factors[most_kept_chunks];
  float shift;

  /// If all numbers of a chunk are -infinity, every term is 0, whatever the finite shift.
  __device__ float shift_of(int chunk) const {
    const int bits = ordered(keys[chunk]);
    return __int_as_float(bits == minus_infinity ? lowest : bits);
  }
  static constexpr int minus_infinity = static_cast<int>(0xff800000);
  static constexpr int lowest = static_cast<int>(0xff7fffff);
};

/// Finds the factors of the sums by the chunks' shifts, one chunk per thread.
__device__ inline void weigh_chunks(RowState& state, int chunk, int chunks) {
  float before = __int_as_float(RowState::minus_infinity), last = before;
  for (int i = 0; i < chunks; ++i) {
    const float shift = state.shift_of(i);
    if (i < chunk) before = Greater()(before, shift);
    last = Greater()(last, shift);
  }
  if (chunk >= chunks) return;
  const float mine = state.shift_of(chunk);
  state.of_former[chunk] = mine > before ? exp_of(before - mine) : 1.0f;
  state.of_own[chunk] = exp_of(mine - Greater()(before, mine));
  state.of_terms[chunk] = exp_of(mine - last);
  if (chunk == 0) state.shift = last;
}

/// Computes rows one after another, without smoothing. All threads compute exponentials; sixteen
/// threads per chunk then add them in the order of the lanes. Reads the next row, as far as
/// registers hold it, while the present row is computed. Requires packs that are aligned in all
/// rows.
template <class Number>
__global__ void __launch_bounds__(threads_of_row, 1)
    softmax_kept_rows(Rows<Number> all, std::int64_t rows) {
  constexpr int n = in_access<Number>;
  constexpr int threads = static_cast<int>(threads_of_row);
  constexpr int packs_ahead = 13;
  constexpr int packs_in_chunk = static_cast<int>(KeptRow<Number>::packs_in_chunk);
  __shared__ RowState state;
  float4* const kept = dynamic_shared();
  const int thread = static_cast<int>(threadIdx.x);
  const int in_warp = thread % static_cast<int>(warp);
  const int packs = static_cast<int>(all.classes / n);
  const KeptRow<Number> place{packs};
  const int chunks = static_cast<int>((all.classes + kept_chunk - 1) / kept_chunk);

  Words ahead[packs_ahead];
  std::int32_t target_ahead = 0;
  const auto read_ahead = [&](std::int64_t row) {
    if (row >= rows) return;
    const Number* logits = all.logits + row * all.classes;
    target_ahead = all.targets[row];
#pragma unroll
    for (int i = 0; i < packs_ahead; ++i)
      if (thread + i * threads < packs)
        ahead[i] = read_words(logits, std::int64_t{thread + i * threads} * n);
  };
  // Keeps a pack, if it exists, and its greatest number. All threads of a warp
  // take part, and their packs belong to one chunk.
  const auto keep = [&](int pack, const Words& words) {
    float most = __int_as_float(RowState::minus_infinity);
    if (pack < packs) {
      const Pack<float, n> x = wide_numbers<Number>(words);
#pragma unroll
      for (int i = 0; i < n; ++i)
        most = fmaxf(most, x[i]);  // Ignores NaN, which reaches the sum by its term.
      place.write(kept, pack, x);
    }
    const int key = __reduce_max_sync(0xffffffffu, ordered(__float_as_int(most)));
    if (in_warp == 0) atomicMax(&state.keys[pack / packs_in_chunk], key);
  };

  read_ahead(blockIdx.x);
  if (thread < most_kept_chunks) state.keys[thread] = ordered(RowState::minus_infinity);
  __syncthreads();
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const Number* logits = all.logits + row * all.classes;
    const int target = target_ahead;
    const bool counts = target != all.ignore;
    // Read before the gradient may overwrite it: the same thread writes the loss.
    float target_logit = 0;
    if (thread == 0 && counts) target_logit = wide(logits[target]);
#pragma unroll
    for (int i = 0; i < packs_ahead; ++i)
      if (thread - in_warp + i * threads < packs) keep(thread + i * threads, ahead[i]);
    for (int pack = thread + packs_ahead * threads; pack - in_warp < packs; pack += threads) {
      Words words = {};
      if (pack < packs) words = read_words(logits, std::int64_t{pack} * n);
      keep(pack, words);
    }
    read_ahead(row + gridDim.x);
    __syncthreads();

    for (int pack = thread; pack < packs; pack += threads) {
      const float minus_shift = -state.shift_of(pack / packs_in_chunk);
      Pack<float, n> x = place.read(kept, pack);
#pragma unroll
      for (int i = 0; i < n; ++i) x[i] = exp_nonpositive(x[i] + minus_shift);
      place.write(kept, pack, x);
    }
    __syncthreads();

    if (const int chunk = thread / static_cast<int>(lanes);
        chunk - in_warp / static_cast<int>(lanes) < chunks) {
      const int lane = thread % static_cast<int>(lanes);
      const int left = static_cast<int>(all.classes) - chunk * static_cast<int>(kept_chunk);
      const int size = left < kept_chunk ? left : static_cast<int>(kept_chunk);
      const float* terms = place.lane_of(kept, chunk, lane);
      float sum = 0;
#pragma unroll 16
      for (int i = lane; i < size; i += static_cast<int>(lanes), terms += place.stride)
        sum += *terms;
      sum = sum_of_lanes(sum);
      if (lane == 0 && chunk < chunks) state.sums[chunk] = sum;
    } else if (thread - in_warp == threads - static_cast<int>(warp)) {
      weigh_chunks(state, in_warp, chunks);
    }
    __syncthreads();

    if (thread < static_cast<int>(warp)) {
      float sum = 0;
      for (int i = 0; i < chunks; ++i) {
        sum *= state.of_former[i];
        sum += state.sums[i] * state.of_own[i];
      }
      const RowLoss found = loss_of(all, log_of(sum), state.shift, target_logit, 0);
      if (thread < chunks) {
        state.factors[thread] = state.of_terms[thread] / sum * found.slope;
        state.keys[thread] = ordered(RowState::minus_infinity);
      }
      if (thread == 0) all.losses[row] = counts ? found.loss : 0;
    }
    __syncthreads();

    if (!all.dlogits) continue;
    Number* dlogits = all.dlogits + row * all.classes;
    for (int pack = thread; pack < packs; pack += threads) {
      const float factor = state.factors[pack / packs_in_chunk];
      Pack<float, n> x = place.read(kept, pack);
#pragma unroll
      for (int i = 0; i < n; ++i) x[i] = counts ? x[i] * factor : 0;
      write_pack(dlogits, std::int64_t{pack} * n, narrow_computed<Number>(x));
    }
    if (!counts) continue;
    // The thread that wrote the target's pack writes the target once more.
    if (const int chunk = target / static_cast<int>(kept_chunk); thread == target / n % threads) {
      const int in_chunk = target % static_cast<int>(kept_chunk);
      const float* terms = place.lane_of(kept, chunk, in_chunk % static_cast<int>(lanes));
      const float term = terms[in_chunk / static_cast<int>(lanes) * place.stride];
      dlogits[target] = narrow<Number>(term * state.factors[chunk] - all.of_target());
    }
  }
}

/// Returns whether rows of logits are long and aligned enough for softmax_kept_rows(), and fit into
/// the GPU's shared memory.
template <class Number>
bool can_keep(const Rows<Number>& all) {
  constexpr int n = in_access<Number>;
  if (all.classes < least_kept_classes || all.classes > most_kept_chunks * kept_chunk ||
      all.classes % n != 0 || !are_aligned(all.logits, all.dlogits))
    return false;
  const KeptRow<Number> row{all.classes / n};
  return row.bytes() + static_shared_bytes <=
         static_cast<std::size_t>(limit_of_gpu(cudaDevAttrMaxSharedMemoryPerBlockOptin));
}

}  // namespace

template <class Number>
void softmax_cross_entropy(Stream& stream, const Number* logits, const std::int32_t* targets,
                           float* losses, Number* dlogits, std::int64_t rows, std::int64_t classes,
                           float scale, const CrossEntropyForm& form) {
  const std::int64_t chunk = std::max(least_chunk, (classes + most_chunks - 1) / most_chunks);
  constexpr std::int64_t no_target = std::int64_t{1} << 32;
  const Rows<Number> all{logits,
                         targets,
                         losses,
                         dlogits,
                         classes,
                         chunk,
                         queue_of(stream).changing(scale),
                         form.ignore ? *form.ignore : no_target,
                         form.smoothing,
                         form.z};
  if (form.smoothing > 0 || !can_keep(all)) {
    launch(stream, blocks_for(rows), dim3(threads_in_block), softmax_row<Number>, all);
    return;
  }
  const std::int64_t blocks = limit_of_gpu(cudaDevAttrMultiProcessorCount);
  launch_with_shared(stream, blocks_for(std::min(rows, blocks)), dim3(threads_of_row),
                     KeptRow<Number>{classes / in_access<Number>}.bytes(),
                     softmax_kept_rows<Number>, all, rows);
}

template void softmax_cross_entropy(Stream&, const float*, const std::int32_t*, float*, float*,
                                    std::int64_t, std::int64_t, float, const CrossEntropyForm&);
template void softmax_cross_entropy(Stream&, const Float16*, const std::int32_t*, float*, Float16*,
                                    std::int64_t, std::int64_t, float, const CrossEntropyForm&);
template void softmax_cross_entropy(Stream&, const BFloat16*, const std::int32_t*, float*,
                                    BFloat16*, std::int64_t, std::int64_t, float,
                                    const CrossEntropyForm&);

}  // namespace troupe::kernels::cuda
