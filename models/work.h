#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/memory/shape.h"
#include "kernels/attention.h"

namespace troupe::models {

/// What one kernel does, whatever the device.
struct KernelWork {
  std::string_view
      kernel;             // Its function: "linear_forward". "elementwise" for all that is like it.
  double operations = 0;  // Floating-point ones.
  double bytes = 0;       // Read and written, as fp32.
};

/// What the passes over an input do.
struct Work {
  std::vector<KernelWork> forward;
  std::vector<KernelWork> backward_input;
  std::vector<KernelWork> backward_weight;

  void add(const Work& more);
};

enum class Trained : std::uint8_t { no, yes };

/// Numbers go in, are looked at once and come out: the memory is what takes the time.
Work elementwise_work(const Shape& input, const Shape& output, Trained trained);

/// A product of [rows, inputs] with a matrix [inputs, outputs], and the products of its gradients.
Work product_work(std::int64_t rows, std::int64_t inputs, std::int64_t outputs);

/// Attention between positions; its backward pass is in the first half alone.
Work attention_work(const kernels::AttentionShape& shape);

}  // namespace troupe::models
