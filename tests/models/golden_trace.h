#pragma once

#include <string>
#include <vector>

#include "core/json.h"
#include "training.h"

namespace troupe::models {

/// A training of PyTorch's in float64, as tests/golden/README.md tells it.
struct GoldenTrace {
  Model model;
  OptimizerConfig optimizer;
  int micro_batches = 1;
  std::int64_t samples = 1;  // In a step.
  Value steps;               // A list: loss, grad_norm, lr.

  // In memory of the reader's.
  std::vector<NamedTensor> initial, final;
  Tensor input, target;  // Of all steps.

  static GoldenTrace read(const std::string& kind, const std::string& optimizer,
                          MemoryPool& memory);
};

double relative(double found, double wanted);

/// How far tensors are from wanted ones, as a share of the norm of all of these.
double distance(const std::vector<NamedTensor>& found, const std::vector<NamedTensor>& wanted);

}  // namespace troupe::models
