#pragma once

#include <functional>
#include <string>
#include <vector>

namespace troupe::bench {

/// Returns the models that can be trained, the larger one first.
std::vector<std::string> train_bench_models();

/// A measurement: the models, the instructions and the peer.
struct TrainBench {
  std::string program;              // The path of `troupe`.
  std::string version;              // Stands in the heading.
  std::vector<std::string> models;  // Some of train_bench_models().
  int rounds = 3;
  std::string instructions;  // "avx2,avx512"; empty: those that kernels use here.
  bool alone = false;        // Without PyTorch.
  std::string python;        // A Python with PyTorch; empty: one of our own (find_torch).

  std::function<void(const std::string&)>
      progress;                                   // Gets a line for each run, as soon as it ends.
  std::function<void(const std::string&)> table;  // Gets the table of each model.
};

/// Measures tokens per second of `program train`, their share of this machine's measured peak,
/// memory, the time to the first step, and the same of PyTorch in eager mode and compiled. Runs are
/// interleaved. Figures are medians over all steps but the first of each run. A run is compared
/// with the peak right before and after it, because a machine's speed drifts.
void measure_train(const TrainBench& bench);

}  // namespace troupe::bench
