#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/lead/counted_losses.h"
#include "actors/messages.h"
#include "actors/run_spec.h"

namespace troupe::actors {

/// The reports about steps that are in flight.
class StepLedger {
 public:
  /// Optimizers are numbered by stage, so those of a stage are adjacent.
  StepLedger(int stages, int optimizers, int micro_batches)
      : stages_(stages), optimizers_(optimizers), micro_batches_(micro_batches) {}

  struct Entry {
    CountedLosses losses;
    std::vector<Digest> samples;                         // Samples read, by micro-batch,
    std::vector<Digest> contents;                        // and their bytes.
    std::vector<std::optional<double>> norms;            // Indexed by optimizer; set when done.
    std::vector<std::optional<double>> penalised_norms;  // Norms after penalties.
    std::vector<std::optional<models::StalenessMetrics>> late;  // Indexed by stage; if reported.
    std::optional<Divergence> divergence;                       // The first one reported.
    std::optional<StepDone> done;  // The first one: all optimizers agree.
    int steps_done = 0;
    int stages = 1;

    /// Returns the norm that all stages clipped by, or else the norm over the stages' own norms.
    double gradient_norm(ClipScope clip) const;
    /// Returns the norm of all gradients after penalties; empty if no stage has penalties.
    std::optional<double> penalised_norm(ClipScope clip) const;
  };

  Entry& add(const MicroBatchLoss& loss);
  Entry& add(const Divergence& divergence);
  Entry& add(const StepDone& done);
  Entry& add(const LateGradients& late);

  /// Returns whether this was reported already.
  bool has(const MicroBatchLoss& loss) const;
  bool has(const StepDone& done) const;

  bool has_all_losses(const Entry& entry) const { return entry.losses.left() == 0; }
  bool complete(std::int64_t step) const;
  /// Returns the loss of a step once all its micro-batches have told theirs.
  std::optional<double> loss(std::int64_t step) const;
  /// Returns the gradient norm of a step that is complete, if it changed weights.
  std::optional<double> norm(std::int64_t step, ClipScope clip) const;
  /// Returns what a step waits for, as a text.
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
