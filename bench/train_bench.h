#pragma once

#include <string>
#include <vector>

namespace troupe::bench {

/// The models that are trained, the larger one first.
std::vector<std::string> train_bench_models();

enum class Beside { nobody, torch };

/// Tokens per second of `program train`, as shares of this machine's own measured peak, beside
/// PyTorch in the same run, if so wanted and where it is installed; as a table for people. Runs are
/// interleaved, figures are medians over all steps but the first of each run. A run is held against
/// the peak right before it and right after: how fast a machine is changes from minute to minute.
std::string measure_train(const std::string& program, const std::string& model, int rounds,
                          Beside beside);

}  // namespace troupe::bench
