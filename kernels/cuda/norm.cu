#include "kernels/cuda/between_layers.h"
#include "kernels/cuda/math.cuh"
#include "kernels/cuda/numbers.cuh"
#include "kernels/cuda/row_sums.cuh"
#include "kernels/cuda/tile.cuh"

namespace troupe::kernels::cuda {
namespace {

/// How many numbers of a row a thread keeps in registers: at most `most`, or exactly `most`. If
/// `most` is 0, threads keep none and read the row from memory at each use.
template <int numbers, bool all>
struct Kept {
  static constexpr int most = numbers;
  static constexpr bool exactly = all;
};
struct NoneKept {
  static constexpr int most = 0;
};

/// A thread's part of a row. The numbers c with equal c % 16 form a lane (tile.cuh), and each lane
/// is summed in order. If numbers are kept, two threads share a lane: the first has `most` numbers,
/// the second the next ones.
template <class Keep>
struct PartOfRow {
  static constexpr int most = Keep::most;
  static constexpr unsigned threads_of_lane = most > 0 ? 2 : 1;
  static constexpr unsigned threads_of_row = threads_of_lane * lanes;

  std::int64_t row, columns;
  bool is_row;      // If false, other threads have this row, and these must not write.
  unsigned thread;  // Its number in the row.

  /// Returns the thread's first column in an array of all columns.
  template <class Number>
  __device__ Number* of_columns(Number* all) const {
    return all + (thread % lanes + thread / lanes * most * lanes);
  }
  /// Returns the thread's first column of the row in a matrix.
  template <class Number>
  __device__ Number* of_row(Number* matrix) const {
    return of_columns(matrix + row * columns);
  }

  /// Calls body(k, c) for each column of the thread, in order. c counts from the thread's first
  /// column. If numbers are kept, k counts the calls, and both are known at compile time.
  template <class Body>
  __device__ void each(Body body) const {
    if constexpr (most == 0) {
      for (std::int64_t c = 0; c < columns - thread; c += lanes) body(0, c);
    } else {
      const int left = static_cast<int>(columns) -
                       static_cast<int>(thread % lanes + thread / lanes * most * lanes);
#pragma unroll
      for (int k = 0; k < most; ++k) {
        const int c = k * static_cast<int>(lanes);
        if (Keep::exactly || c < left) body(k, c);
      }
    }
  }

  /// Calls add(k, c, sums) for each column. It adds a column's terms to sums of the row, which
  /// start at 0. All threads get the sums.
  template <int count, class AddTerms>
  __device__ void sum(float (&sums)[count], AddTerms add) const {
    // The second thread of a lane goes on from the sums of the first. What the first thread adds
    // meanwhile is not used. The turns share their code, which is long.
    for (float& total : sums) total = 0;
#pragma unroll 1
    for (unsigned turn = 0; turn < threads_of_lane; ++turn) {
      if (turn > 0)
        for (float& total : sums)
          total = __shfl_sync(0xffffffffu, total, static_cast<int>(thread % lanes), warp);
      each([&](int k, std::int64_t c) { add(k, c, sums); });
    }
    for (float& total : sums) {
      total = sum_of_lanes(total);
      if constexpr (threads_of_lane == 2) total = __shfl_sync(0xffffffffu, total, lanes, warp);
    }
  }
};

/// A thread's numbers of a row. If they are kept, they are read once, with all loads in flight
/// together.
template <class Keep, class Number>
class NumbersOfRow {
 public:
  __device__ NumbersOfRow(const PartOfRow<Keep>& part, const Number* matrix) {
    const Number* row = part.of_row(matrix);
    part.each([&](int k, std::int64_t c) { numbers_[k] = wide(row[c]); });
  }
  __device__ float operator()(int k, std::int64_t) const { return numbers_[k]; }
  __device__ void replace(int k, float number) { numbers_[k] = number; }

 private:
  float numbers_[Keep::most];
};
template <class Number>
class NumbersOfRow<NoneKept, Number> {
 public:
  __device__ NumbersOfRow(const PartOfRow<NoneKept>& part, const Number* matrix)
      : row_(part.of_row(matrix)) {}
  __device__ float operator()(int, std::int64_t c) const { return wide(row_[c]); }

 private:
  const Number* row_;
};

/// The input of a norm that lies in memory.
struct RowsInMemory {
  const float* x;

  template <class Keep>
  __device__ NumbersOfRow<Keep, float> read(const PartOfRow<Keep>& part) const {
    return {part, x};
  }
};

/// The input of a norm that is a sum. The kernel stores it.
template <class Number>
struct SumOfRows {
  const Number* a;
  const float* b;
  float* sum;

  template <class Keep>
  __device__ NumbersOfRow<Keep, float> read(const PartOfRow<Keep>& part) const {
    const NumbersOfRow<Keep, Number> first(part, a);
    NumbersOfRow<Keep, float> second(part, b);
    float* out = part.of_row(sum);
    part.each([&](int k, std::int64_t c) {
      const float total = first(k, c) + second(k, c);
      if constexpr (Keep::most > 0) second.replace(k, total);
      if (part.is_row) out[c] = total;
    });
    if constexpr (Keep::most > 0)
      return second;
    else
      return {part, sum};
  }
};

/// The result of a norm's backward pass.
template <class Number>
struct GradientRows {
  const float* more;  // Added to the gradient. May be null.
  float* dx;
  Number* rounded;  // The sum in 16 bits. May be null, and is if `more` is null.

  /// Writes gradient(k, c) for each column.
  template <class Keep, class Gradient>
  __device__ void write(const PartOfRow<Keep>& part, Gradient gradient) const {
    float* out = part.of_row(dx);
    if (!more) return part.each([&](int k, std::int64_t c) { out[c] = gradient(k, c); });
    const NumbersOfRow<Keep, float> added(part, more);
    const auto sum = [&](int k, std::int64_t c) { return gradient(k, c) + added(k, c); };
    if (std::is_same_v<Number, float> || !rounded)
      return part.each([&](int k, std::int64_t c) { out[c] = sum(k, c); });
    Number* out_rounded = part.of_row(rounded);
    part.each([&](int k, std::int64_t c) {
      const float number = sum(k, c);
      out[c] = number;
      out_rounded[c] = narrow<Number>(number);
    });
  }
};

/// Threads in a block. Small blocks fill a GPU evenly although each thread has many registers.
constexpr unsigned threads_in_norm = 128;

template <class Keep, class Body>
__global__ void walk_norm_rows(std::int64_t rows, std::int64_t columns, Body body) {
  constexpr unsigned threads = PartOfRow<Keep>::threads_of_row;
  const std::int64_t row =
      std::int64_t{blockIdx.x} * (threads_in_norm / threads) + threadIdx.x / threads;
  body(PartOfRow<Keep>{row < rows ? row : rows - 1, columns, row < rows, threadIdx.x % threads});
}
template <class Keep, class Body>
void launch_norm(Stream& stream, std::int64_t rows, std::int64_t columns, const Body& body) {
  launch(stream, blocks_for(rows, threads_in_norm / PartOfRow<Keep>::threads_of_row),
         dim3(threads_in_norm), walk_norm_rows<Keep, Body>, rows, columns, body);
}
/// Calls body(part) for all parts of all rows. Keeps rows of up to 1024 numbers, and rows of the
/// common widths below, which need no checks. Each case is a kernel of its own.
template <class Body>
void for_norm_rows(Stream& stream, std::int64_t rows, std::int64_t columns, const Body& body) {
  if (rows == 0) return;
  switch (columns) {
    case 768:
      return launch_norm<Kept<24, true>>(stream, rows, columns, body);
    case 1024:
      return launch_norm<Kept<32, true>>(stream, rows, columns, body);
    case 1280:
      return launch_norm<Kept<40, true>>(stream, rows, columns, body);
    case 1600:
      return launch_norm<Kept<50, true>>(stream, rows, columns, body);
    case 2048:
      return launch_norm<Kept<64, true>>(stream, rows, columns, body);
    default:
      if (columns <= 512)
        launch_norm<Kept<16, false>>(stream, rows, columns, body);
      else if (columns <= 1024)
        launch_norm<Kept<32, false>>(stream, rows, columns, body);
      else
        launch_norm<NoneKept>(stream, rows, columns, body);
  }
}

template <class Input, class Number>
struct LayerNormForward {
  Input x;
  const float *weight, *bias;
  Number* y;
  float *mean, *rstd;
  float eps;

  template <class Keep>
  __device__ void operator()(const PartOfRow<Keep>& part) const {
    const auto columns = static_cast<float>(part.columns);
    const NumbersOfRow<Keep, float> in = x.read(part);
    const float *w = part.of_columns(weight), *b = part.of_columns(bias);
    float total[1], squares[1];
    part.sum(total, [&](int k, std::int64_t c, float(&sums)[1]) { sums[0] += in(k, c); });
    const float center = total[0] / columns;
    part.sum(squares, [&](int k, std::int64_t c, float(&sums)[1]) {
      const float distance = in(k, c) - center;
      sums[0] = fmaf(distance, distance, sums[0]);
    });
    const float scale = inverse_root(squares[0] / columns + eps);
    if (!part.is_row) return;
    if (part.thread == 0) {
      mean[part.row] = center;
      rstd[part.row] = scale;
    }
    Number* out = part.of_row(y);
    part.each([&](int k, std::int64_t c) {
      out[c] = narrow<Number>(fmaf((in(k, c) - center) * scale, __ldg(w + c), __ldg(b + c)));
    });
  }
};

// dx = rstd (g - mean(g) - n mean(g n)) + more, with g = dy weight and n the normalized input.
template <class Number>
struct LayerNormBackwardInput {
  const float *x, *weight, *mean, *rstd;
  const Number* dy;
  GradientRows<Number> result;

  template <class Keep>
  __device__ void operator()(const PartOfRow<Keep>& part) const {
    const auto columns = static_cast<float>(part.columns);
    const NumbersOfRow<Keep, float> in(part, x);
    const float* w = part.of_columns(weight);
    const NumbersOfRow<Keep, Number> gradient(part, dy);
    const float center = mean[part.row], scale = rstd[part.row];
    const auto normal = [&](int k, std::int64_t c) { return (in(k, c) - center) * scale; };
    const auto g = [&](int k, std::int64_t c) { return gradient(k, c) * __ldg(w + c); };
    float totals[2];
    part.sum(totals, [&](int k, std::int64_t c, float(&sums)[2]) {
      sums[0] += g(k, c);
      sums[1] = fmaf(g(k, c), normal(k, c), sums[1]);
    });
    const float mean_g = totals[0] / columns;
    const float minus_mean_gn = -totals[1] / columns;
    if (!part.is_row) return;
    result.write(part, [&](int k, std::int64_t c) {
      return scale * fmaf(normal(k, c), minus_mean_gn, g(k, c) - mean_g);
    });
  }
};

template <class Input, class Number>
struct RmsNormForward {
  Input x;
  const float* weight;
  Number* y;
  float* rstd;
  float eps;

  template <class Keep>
  __device__ void operator()(const PartOfRow<Keep>& part) const {
    const auto columns = static_cast<float>(part.columns);
    const NumbersOfRow<Keep, float> in = x.read(part);
    const float* w = part.of_columns(weight);
    float squares[1];
    part.sum(squares, [&](int k, std::int64_t c, float(&sums)[1]) {
      sums[0] = fmaf(in(k, c), in(k, c), sums[0]);
    });
    const float scale = inverse_root(squares[0] / columns + eps);
    if (!part.is_row) return;
    if (part.thread == 0) rstd[part.row] = scale;
    Number* out = part.of_row(y);
    part.each(
        [&](int k, std::int64_t c) { out[c] = narrow<Number>(in(k, c) * scale * __ldg(w + c)); });
  }
};

// dx = rstd (g - n mean(g n)) + more, with g and n as in layer norm.
template <class Number>
struct RmsNormBackwardInput {
  const float *x, *weight, *rstd;
  const Number* dy;
  GradientRows<Number> result;

  template <class Keep>
  __device__ void operator()(const PartOfRow<Keep>& part) const {
    const auto columns = static_cast<float>(part.columns);
    const NumbersOfRow<Keep, float> in(part, x);
    const float* w = part.of_columns(weight);
    const NumbersOfRow<Keep, Number> gradient(part, dy);
    const float scale = rstd[part.row];
    const auto normal = [&](int k, std::int64_t c) { return in(k, c) * scale; };
    const auto g = [&](int k, std::int64_t c) { return gradient(k, c) * __ldg(w + c); };
    float total[1];
    part.sum(total, [&](int k, std::int64_t c, float(&sums)[1]) {
      sums[0] = fmaf(g(k, c), normal(k, c), sums[0]);
    });
    const float minus_mean_gn = -total[0] / columns;
    if (!part.is_row) return;
    result.write(part, [&](int k, std::int64_t c) {
      return scale * fmaf(normal(k, c), minus_mean_gn, g(k, c));
    });
  }
};

/// A term of row_sums(): the gradients of weight and bias.
template <class Number>
struct LayerNormOfRow {
  const float *x, *mean, *rstd;
  const Number* dy;
  std::int64_t columns;

  __device__ void operator()(std::int64_t row, std::int64_t column, float (&sums)[2]) const {
    const std::int64_t i = row * columns + column;
    const float gradient = wide(dy[i]);
    sums[0] = fmaf(gradient, (x[i] - mean[row]) * rstd[row], sums[0]);
    sums[1] += gradient;
  }
};

template <class Number>
struct RmsNormOfRow {
  const float *x, *rstd;
  const Number* dy;
  std::int64_t columns;

  __device__ void operator()(std::int64_t row, std::int64_t column, float (&sums)[1]) const {
    const std::int64_t i = row * columns + column;
    sums[0] = fmaf(wide(dy[i]), x[i] * rstd[row], sums[0]);
  }
};

}  // namespace

template <class Number>
void Norms<Number>::layer_norm_forward(Stream& stream, const float* x, const float* weight,
                                       const float* bias, Number* y, float* mean, float* rstd,
                                       std::int64_t rows, std::int64_t columns, float eps) {
  for_norm_rows(stream, rows, columns,
                LayerNormForward<RowsInMemory, Number>{{x}, weight, bias, y, mean, rstd, eps});
}
template <class Number>
void Norms<Number>::layer_norm_forward_of_sum(Stream& stream, const Number* a, const float* b,
                                              float* sum, const float* weight, const float* bias,
                                              Number* y, float* mean, float* rstd,
                                              std::int64_t rows, std::int64_t columns, float eps) {
  for_norm_rows(
      stream, rows, columns,
      LayerNormForward<SumOfRows<Number>, Number>{{a, b, sum}, weight, bias, y, mean, rstd, eps});
}
template <class Number>
void Norms<Number>::layer_norm_backward_input(Stream& stream, const float* x, const float* weight,
                                              const float* mean, const float* rstd,
                                              const Number* dy, const float* more, float* dx,
                                              std::int64_t rows, std::int64_t columns) {
  for_norm_rows(stream, rows, columns,
                LayerNormBackwardInput<Number>{x, weight, mean, rstd, dy, {more, dx, nullptr}});
}
template <class Number>
void Norms<Number>::layer_norm_backward_weight(Stream& stream, const float* x, const float* mean,
                                               const float* rstd, const Number* dy, float* dweight,
                                               float* dbias, std::int64_t rows,
                                               std::int64_t columns) {
  row_sums(stream, RowSums<2>{{dweight, dbias}, rows, columns, nullptr},
           LayerNormOfRow<Number>{x, mean, rstd, dy, columns});
}
template <class Number>
void Norms<Number>::rms_norm_forward(Stream& stream, const float* x, const float* weight, Number* y,
                                     float* rstd, std::int64_t rows, std::int64_t columns,
                                     float eps) {
  for_norm_rows(stream, rows, columns,
                RmsNormForward<RowsInMemory, Number>{{x}, weight, y, rstd, eps});
}
template <class Number>
void Norms<Number>::rms_norm_forward_of_sum(Stream& stream, const Number* a, const float* b,
                                            float* sum, const float* weight, Number* y, float* rstd,
                                            std::int64_t rows, std::int64_t columns, float eps) {
  for_norm_rows(stream, rows, columns,
                RmsNormForward<SumOfRows<Number>, Number>{{a, b, sum}, weight, y, rstd, eps});
}
template <class Number>
void Norms<Number>::rms_norm_backward_input(Stream& stream, const float* x, const float* weight,
                                            const float* rstd, const Number* dy, const float* more,
                                            float* dx, std::int64_t rows, std::int64_t columns) {
  for_norm_rows(stream, rows, columns,
                RmsNormBackwardInput<Number>{x, weight, rstd, dy, {more, dx, nullptr}});
}
template <class Number>
void Norms<Number>::rms_norm_backward_weight(Stream& stream, const float* x, const float* rstd,
                                             const Number* dy, float* dweight, std::int64_t rows,
                                             std::int64_t columns) {
  row_sums(stream, RowSums<1>{{dweight}, rows, columns, nullptr},
           RmsNormOfRow<Number>{x, rstd, dy, columns});
}

template <class Number>
void layer_norm_backward_input_rounded(Stream& stream, const float* x, const float* weight,
                                       const float* mean, const float* rstd, const Number* dy,
                                       const float* more, float* dx, Number* rounded,
                                       std::int64_t rows, std::int64_t columns) {
  for_norm_rows(stream, rows, columns,
                LayerNormBackwardInput<Number>{x, weight, mean, rstd, dy, {more, dx, rounded}});
}
template <class Number>
void rms_norm_backward_input_rounded(Stream& stream, const float* x, const float* weight,
                                     const float* rstd, const Number* dy, const float* more,
                                     float* dx, Number* rounded, std::int64_t rows,
                                     std::int64_t columns) {
  for_norm_rows(stream, rows, columns,
                RmsNormBackwardInput<Number>{x, weight, rstd, dy, {more, dx, rounded}});
}

template struct Norms<float>;
template struct Norms<Float16>;
template struct Norms<BFloat16>;

template void layer_norm_backward_input_rounded(Stream&, const float*, const float*, const float*,
                                                const float*, const Float16*, const float*, float*,
                                                Float16*, std::int64_t, std::int64_t);
template void rms_norm_backward_input_rounded(Stream&, const float*, const float*, const float*,
                                              const Float16*, const float*, float*, Float16*,
                                              std::int64_t, std::int64_t);
template void layer_norm_backward_input_rounded(Stream&, const float*, const float*, const float*,
                                                const float*, const BFloat16*, const float*, float*,
                                                BFloat16*, std::int64_t, std::int64_t);
template void rms_norm_backward_input_rounded(Stream&, const float*, const float*, const float*,
                                              const BFloat16*, const float*, float*, BFloat16*,
                                              std::int64_t, std::int64_t);

}  // namespace troupe::kernels::cuda
