#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/memory/shape.h"
#include "kernels/attention.h"

namespace troupe::models {

/// The work of one kernel, independent of the device.
struct KernelWork {
  /// The kernel's function: "linear_forward". All elementwise kernels are "elementwise".
  std::string_view kernel;
  double operations = 0;  // Floating-point operations.
  double bytes = 0;       // Bytes read and written, as fp32.
};

/// The work of a layer's passes over an input.
struct Work {
  std::vector<KernelWork> forward;
  std::vector<KernelWork> backward_input;
  std::vector<KernelWork> backward_weight;

  void add(const Work& more);
};

enum class Trained : std::uint8_t { no, yes };

/// Returns the work of a layer that reads and writes each number once: memory bandwidth limits it.
Work elementwise_work(const Shape& input, const Shape& output, Trained trained);

/// Returns the work of a product [rows, inputs] x [inputs, outputs] and of its two gradients.
Work product_work(std::int64_t rows, std::int64_t inputs, std::int64_t outputs);

/// Returns the work of attention. It has no parameters, so nothing falls to backward_weight.
Work attention_work(const kernels::AttentionShape& shape);

}  // namespace troupe::models
