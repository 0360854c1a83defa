#pragma once

#include <string>
#include <vector>

namespace troupe::bench {

/// Returns the models that can be trained, the larger one first.
std::vector<std::string> train_bench_models();

enum class Beside { nobody, torch };

/// Returns a table for people: tokens per second of `program train`, their share of this machine's
/// measured peak, and PyTorch's figures if wanted and installed. Runs are interleaved. Figures are
/// medians over all steps but the first of each run. A run is compared with the peak right before
/// and after it, because a machine's speed drifts.
std::string measure_train(const std::string& program, const std::string& model, int rounds,
                          Beside beside);

}  // namespace troupe::bench
