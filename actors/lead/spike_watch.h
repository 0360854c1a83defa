#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/lead/step_ledger.h"
#include "actors/messages.h"
#include "actors/run_spec.h"
#include "core/result.h"
#include "storage/checkpoint/ledger.h"

namespace troupe::actors {

/// A step whose loss or gradients are a spike.
struct Spike {
  std::int64_t step = 0;  // Counted from 1.
  std::string why;
  std::optional<double> loss;  // If it is finite.
};

/// Looks for spikes among the steps of a run. It knows the numbers of the newest steps, and reads
/// those of earlier ones from the ledger when an attempt begins far back.
class SpikeWatch {
 public:
  /// Continues after a step. Forgets the numbers of later steps.
  Status begin(const RunSpec& spec, std::int64_t after);
  /// Notes a loss of a step that is not finite. The step may not be the next one.
  void note(const RunSpec& spec, const MicroBatchLoss& loss);
  /// The same for a gradient, once all losses of its step are known.
  void note(const RunSpec& spec, const Divergence& divergence);
  /// Notes a done step. Returns the norm of its gradients if it changed weights and the run judges
  /// norms.
  std::optional<double> done(const RunSpec& spec, std::int64_t step,
                             const StepLedger::Entry& entry);
  /// Returns the spike of the next step, counted from 1. `loss` is its loss once it is known, and
  /// `norm` the norm of its gradients.
  std::optional<Spike> find(const RunSpec& spec, std::int64_t step, std::optional<double> loss,
                            std::optional<double> norm) const;

 private:
  std::vector<double> last_losses(std::int64_t count) const;
  /// Returns nothing if one of them is not known.
  std::vector<double> last_norms(std::int64_t count) const;

  /// A number that is not finite. Losses come before gradients, in the order of the micro-batches.
  struct NotFinite {
    std::int64_t order = 0;
    std::string what;
  };
  void note(std::int64_t step, NotFinite found);

  std::map<std::int64_t, storage::StepNumbers> numbers_;  // The newest steps that changed weights.
  std::int64_t known_until_ = 0;                          // The last step of which it knows.
  std::map<std::int64_t, NotFinite> not_finite_;          // The first in order, by step.
};

}  // namespace troupe::actors
