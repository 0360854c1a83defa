#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/memory/stream.h"
#include "core/result.h"
#include "kernels/precision.h"

namespace troupe::bench {

/// A GPT, and what a pass gets. The default is GPT-2's smallest, its vocabulary rounded up.
struct GptSize {
  std::int64_t micro = 16;
  std::int64_t context = 1024;
  std::int64_t layers = 12;
  std::int64_t width = 768;
  std::int64_t heads = 12;
  std::int64_t vocab = 50'304;

  std::int64_t rows() const { return micro * context; }
  std::int64_t parameters() const;
};

/// What a GPU does at best, a second, by measurement: in a large product, and in a large copy.
struct GpuPeaks {
  double operations = 0;
  double bytes = 0;  // Read or written.
};

/// One of the kernels that a GPT is trained by, and how often it comes.
struct GpuKernelFigure {
  std::string kernel;
  std::int64_t times = 0;
  double seconds = 0;  // Of one: the median of the rounds.
  double floor = 0;  // What it would take at a peak: that of products or that of copies, whichever
                     // is longer.
};

struct GpuFigures {
  GpuPeaks peaks;
  std::vector<GpuKernelFigure> micro_batch;  // Forward and back.
  std::vector<GpuKernelFigure> step;
};

/// How much is done for it. The square product and the copy shall be large enough for their peaks.
struct GpuEffort {
  int rounds = 9;
  std::int64_t square = 8192;
  std::int64_t copied = std::int64_t{1} << 30;
};

/// Measures them one by one on a stream of a GPU that has tensor cores, in a precision of theirs
/// with 16 bits. An error where there is no such GPT, or not memory enough, or where the GPU fails.
Result<GpuFigures> measure_gpu_kernels(Stream& stream, const GptSize& size,
                                       kernels::Precision precision, const GpuEffort& effort = {});

/// As a table for people.
std::string to_table(const GptSize& size, const GpuFigures& figures);

}  // namespace troupe::bench
