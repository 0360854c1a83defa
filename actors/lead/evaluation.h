#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "actors/messages.h"
#include "actors/run_spec.h"

namespace troupe::actors {

/// Decides when a run is evaluated, and collects the losses of an evaluation.
class Evaluation {
 public:
  /// Regards every step up to this one as evaluated.
  void count_from(std::int64_t step) {
    done_ = step;
    losses_.clear();
  }
  bool is_due(const RunSpec& spec, std::int64_t step) const {
    if (!spec.validation || step <= done_) return false;
    const auto every = spec.eval_every;
    return step == spec.steps || (every && step / *every > done_ / *every);
  }

  void begin(int micro_batches) { losses_.assign(static_cast<std::size_t>(micro_batches), {}); }
  /// Returns whether this loss is still missing.
  bool expects(const MicroBatchLoss& loss) const {
    const auto index = static_cast<std::size_t>(loss.index);
    return index < losses_.size() && !losses_[index];
  }
  void add(const MicroBatchLoss& loss) {
    losses_.at(static_cast<std::size_t>(loss.index)) = loss.mean;
  }
  /// Returns the mean loss once all losses have arrived.
  std::optional<double> mean() const {
    double sum = 0;
    for (const auto& loss : losses_) {
      if (!loss) return {};
      sum += *loss;
    }
    return sum / static_cast<double>(losses_.size());
  }

 private:
  std::int64_t done_ = 0;
  std::vector<std::optional<double>> losses_;  // Indexed by micro-batch, the order of summing.
};

}  // namespace troupe::actors
