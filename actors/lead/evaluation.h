#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "actors/caf_shim.h"
#include "actors/lead/counted_losses.h"
#include "actors/messages.h"
#include "actors/run_spec.h"

namespace troupe::actors {

/// Decides when a run is evaluated, collects the losses of an evaluation, and knows those of all
/// evaluations.
class Evaluation {
 public:
  /// Called once, with the evaluations of the run's earlier processes.
  void run_begins(std::vector<storage::EvaluatedStep> earlier) { all_ = std::move(earlier); }
  /// Regards every step up to this one as evaluated. Takes back later evaluations.
  void count_from(std::int64_t step) {
    done_ = step;
    losses_ = CountedLosses();
    storage::take_back(all_, step);
  }
  bool is_due(const RunSpec& spec, std::int64_t step) const {
    if (!spec.validation || step <= done_) return false;
    const auto every = spec.eval_every;
    return step == spec.steps || (every && step / *every > done_ / *every);
  }

  void begin(int micro_batches, caf_shim::TimePoint now) {
    losses_ = CountedLosses(micro_batches);
    begun_ = now;
  }
  /// Returns the time since begin().
  caf_shim::Duration takes(caf_shim::TimePoint now) const { return now - begun_; }
  /// Returns whether this loss is still missing.
  bool expects(const MicroBatchLoss& loss) const {
    return loss.index < losses_.size() && !losses_.is_known(loss.index);
  }
  void add(const MicroBatchLoss& loss) { losses_.add(loss); }
  /// Notes the result.
  void complete(std::int64_t step, double loss) {
    count_from(step);
    all_.push_back({step, loss});
  }
  const std::vector<storage::EvaluatedStep>& all() const { return all_; }
  /// Returns the loss after a step, if the newest evaluation was after that step.
  std::optional<double> loss_after(std::int64_t step) const {
    if (all_.empty() || all_.back().step != step) return {};
    return all_.back().loss;
  }

  bool has_all_losses() const { return losses_.left() == 0; }
  /// Returns how many targets count, of those whose losses have arrived.
  std::int64_t counted() const { return losses_.counted(); }
  /// Returns the mean loss once all losses have arrived.
  std::optional<double> mean() const {
    if (!has_all_losses()) return {};
    return losses_.mean();
  }

 private:
  std::int64_t done_ = 0;
  caf_shim::TimePoint begun_;
  std::vector<storage::EvaluatedStep> all_;
  CountedLosses losses_;
};

}  // namespace troupe::actors
