#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/messages.h"

namespace troupe::actors {

/// What has been heard of the steps that are under way.
class StepLedger {
 public:
  /// The optimizers of a stage follow one another.
  StepLedger(int stages, int optimizers, int micro_batches)
      : stages_(stages), optimizers_(optimizers), micro_batches_(micro_batches) {}

  struct Entry {
    std::vector<std::optional<double>> losses;                  // By micro-batch.
    std::vector<Digest> samples;                                // Likewise: that were read.
    std::vector<std::vector<models::SquaredNorm>> squares;      // By optimizer.
    std::vector<std::optional<double>> norms;                   // By optimizer: its step is done.
    std::vector<std::optional<models::StalenessMetrics>> late;  // By stage, where it was told.
    int losses_known = 0, squares_known = 0, steps_done = 0;
    std::optional<double> norm;  // Of all gradients, once decided.
    int stages = 1;

    /// In the order of the micro-batches.
    double mean_loss() const;
    /// As decided, or what the stages clipped by adds up to.
    double gradient_norm() const;
  };

  Entry& add(const MicroBatchLoss& loss);
  Entry& add(const Norms& norms);
  Entry& add(const StepDone& done);
  Entry& add(const LateGradients& late);

  /// All that a decision needs is known.
  bool can_decide(const Entry& entry) const {
    return entry.squares_known == optimizers_ && entry.losses_known == micro_batches_ &&
           !entry.norm;
  }
  bool complete(std::int64_t step) const;
  /// What a step is not complete without, for a person.
  std::string missing(std::int64_t step) const;
  Entry take(std::int64_t step) { return std::move(entries_.extract(step).mapped()); }

 private:
  Entry& entry(std::int64_t step);

  int stages_;
  int optimizers_;
  int micro_batches_;
  std::map<std::int64_t, Entry> entries_;
};

}  // namespace troupe::actors
