#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/messages.h"
#include "actors/run_spec.h"

namespace troupe::actors {

/// What has been heard of the steps that are under way.
class StepLedger {
 public:
  /// The optimizers of a stage follow one another.
  StepLedger(int stages, int optimizers, int micro_batches)
      : stages_(stages), optimizers_(optimizers), micro_batches_(micro_batches) {}

  struct Entry {
    std::vector<std::optional<double>> losses;                  // By micro-batch.
    std::vector<Digest> samples;                                // Likewise: that were read,
    std::vector<Digest> contents;                               // and the bytes that they had.
    std::vector<std::optional<double>> norms;                   // By optimizer: its step is done.
    std::vector<std::optional<double>> penalised_norms;         // Likewise, after penalties.
    std::vector<std::optional<models::StalenessMetrics>> late;  // By stage, where it was told.
    std::optional<Divergence> divergence;                       // The first that came.
    std::optional<StepDone> done;                               // Likewise: all decide alike.
    int losses_known = 0, steps_done = 0;
    int stages = 1;

    /// In the order of the micro-batches.
    double mean_loss() const;
    /// By which all stages clipped, or what their own norms add up to.
    double gradient_norm(ClipScope clip) const;
    /// The norm of all gradients after penalties; empty if no stage penalised any.
    std::optional<double> penalised_norm(ClipScope clip) const;
  };

  Entry& add(const MicroBatchLoss& loss);
  Entry& add(const Divergence& divergence);
  Entry& add(const StepDone& done);
  Entry& add(const LateGradients& late);

  /// Whether it was told already.
  bool has(const MicroBatchLoss& loss) const;
  bool has(const StepDone& done) const;

  bool has_all_losses(const Entry& entry) const { return entry.losses_known == micro_batches_; }
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
