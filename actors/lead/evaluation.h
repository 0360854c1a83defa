#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "actors/messages.h"
#include "actors/run_spec.h"

namespace troupe::actors {

/// When a run is to be evaluated, and the losses of an evaluation as they come in.
class Evaluation {
 public:
  /// Every step up to this one has been evaluated, or will not be.
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
  /// Whether it is one of those that are waited for.
  bool expects(const MicroBatchLoss& loss) const {
    const auto index = static_cast<std::size_t>(loss.index);
    return index < losses_.size() && !losses_[index];
  }
  void add(const MicroBatchLoss& loss) {
    losses_.at(static_cast<std::size_t>(loss.index)) = loss.mean;
  }
  /// Once all are there.
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
  std::vector<std::optional<double>> losses_;  // By micro-batch: one order of adding up.
};

}  // namespace troupe::actors
