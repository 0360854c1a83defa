#pragma once

#include <string>
#include <vector>

#include "core/json.h"
#include "training.h"

namespace troupe::models {

/// A PyTorch training run in float64; see tests/golden/README.md.
struct GoldenTrace {
  Model model;
  OptimizerConfig optimizer;
  int micro_batches = 1;
  std::int64_t samples = 1;  // Per step.
  Value steps;               // A list: loss, grad_norm, lr.

  // Allocated from the reader's memory pool.
  std::vector<NamedTensor> initial, final;
  Tensor input, target;  // All steps.

  static GoldenTrace read(const std::string& kind, const std::string& optimizer,
                          MemoryPool& memory);
};

double relative(double found, double wanted);

/// Returns the distance of tensors from wanted ones, relative to the norm of all wanted ones.
double distance(const std::vector<NamedTensor>& found, const std::vector<NamedTensor>& wanted);

}  // namespace troupe::models
