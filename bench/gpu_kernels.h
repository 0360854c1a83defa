#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/memory/stream.h"
#include "core/result.h"
#include "kernels/precision.h"

namespace troupe::bench {

/// A GPT and its micro-batch. The default is the smallest GPT-2, with its vocabulary rounded up.
struct GptSize {
  std::int64_t micro = 16;
  std::int64_t context = 1024;
  std::int64_t layers = 12;
  std::int64_t width = 768;
  std::int64_t heads = 12;
  std::int64_t vocab = 50'304;

  std::int64_t rows() const { return micro * context; }
};

/// A GPU's measured peaks per second: of a large product, and of a large copy.
struct GpuPeaks {
  double operations = 0;
  double bytes = 0;  // Read or written.
};

/// One of the kernels that train a GPT, and how often it runs.
struct GpuKernelFigure {
  std::string kernel;
  std::int64_t times = 0;
  double seconds = 0;  // Per run: the median of the rounds.
  double floor = 0;    // Time at the peak of products or of copies, whichever is longer.
};

struct GpuFigures {
  GpuPeaks peaks;
  std::vector<GpuKernelFigure> micro_batch;  // Forward and backward.
  std::vector<GpuKernelFigure> step;
};

/// The effort of a measurement. The product and the copy must be large enough to reach their peaks.
struct GpuEffort {
  int rounds = 9;
  std::int64_t square = 8192;
  std::int64_t copied = std::int64_t{1} << 30;
};

/// Measures the kernels one by one on a GPU with tensor cores, in one of their 16-bit precisions.
/// Returns an error if the shape is invalid, memory is short, or the GPU fails.
Result<GpuFigures> measure_gpu_kernels(Stream& stream, const GptSize& size,
                                       kernels::Precision precision, const GpuEffort& effort = {});

/// Returns a table for people.
std::string to_table(const GptSize& size, const GpuFigures& figures);

}  // namespace troupe::bench
