#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/messages.h"
#include "actors/run_spec.h"
#include "core/result.h"

namespace troupe::actors {

/// A step with a loss that is a spike.
struct Spike {
  std::int64_t step = 0;  // Counted from 1.
  std::string why;
  std::optional<double> loss;  // If it is finite.
};

/// Looks for spikes among the steps of a run. It knows the losses of the newest steps, and reads
/// those of earlier ones from the ledger when an attempt begins far back.
class SpikeWatch {
 public:
  /// Continues after a step. Forgets the losses of later steps.
  Status begin(const RunSpec& spec, std::int64_t after);
  /// Notes a loss of a step that is not finite. The step may not be the next one.
  void note(const RunSpec& spec, const MicroBatchLoss& loss);
  /// The same for a gradient, once all losses of its step are known.
  void note(const RunSpec& spec, const Divergence& divergence);
  /// Notes a done step, with its loss if it changed weights.
  void done(const RunSpec& spec, std::int64_t step, std::optional<double> loss);
  /// Returns the spike of the next step, counted from 1. `loss` is its loss once it is known.
  std::optional<Spike> find(const RunSpec& spec, std::int64_t step,
                            std::optional<double> loss) const;

 private:
  std::vector<double> last(std::int64_t count) const;

  /// A number that is not finite. Losses come before gradients, in the order of the micro-batches.
  struct NotFinite {
    std::int64_t order = 0;
    std::string what;
  };
  void note(std::int64_t step, NotFinite found);

  std::map<std::int64_t, double> losses_;         // The newest steps that changed weights.
  std::int64_t known_until_ = 0;                  // The last step of which it knows.
  std::map<std::int64_t, NotFinite> not_finite_;  // The first in order, by step.
};

}  // namespace troupe::actors
