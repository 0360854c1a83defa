#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/memory/stream.h"
#include "models/parameter.h"
#include "models/staleness.h"
#include "models/train/optimizer.h"

namespace troupe::models {

struct UpdateRule;

/// The slots of one parameter, the first use first.
using Slots = std::vector<std::size_t>;

/// Returns the parameters that a stage owns, in the order in which their names first occur.
std::vector<Slots> owned_slots(const std::vector<Parameter>& parameters,
                               const std::vector<std::string>& borrowed);
/// Returns those of them that are trained. Moments have this order.
std::vector<Slots> trained_slots(const std::vector<Parameter>& parameters,
                                 const std::vector<std::string>& borrowed);

/// Returns the settings of each of these parameters.
std::vector<OptimizerConfig> configs_of(const OptimizerConfig& config,
                                        const std::vector<Parameter>& parameters,
                                        const std::vector<Slots>& owned);

/// Returns a parameter in the form that layers read. Packs a matrix.
Weight weight_of(Stream& stream, const Parameter& parameter, kernels::Precision precision,
                 Tensor value);

/// Names the moments that an optimizer keeps for a parameter: the rule's own; then "spread", the
/// average of its squared steps; "last_move", the last step's change of the weights; and "drift",
/// the average direction of its steps. These three are kept only if a policy reads them. The last
/// is "ema", the average of the weights, if the configuration asks for it.
std::vector<std::string_view> moment_names(const UpdateRule& rule, const OptimizerConfig& config,
                                           const StalenessOptions& staleness);
inline constexpr std::string_view spread_name = "spread", last_move_name = "last_move",
                                  drift_name = "drift", ema_name = "ema";

/// Returns whether the optimizer must keep a parameter's last update, because gaps are measured by
/// it and the rule's moments do not contain it.
bool keeps_last_move(const OptimizerConfig& config, const StalenessOptions& staleness);

/// The sets of tensors in the gradient sum of a step. Each set has one tensor for each slot. The
/// gradients come first. If penalties divide them, a set of undivided gradients follows, for
/// clipping and reports. If the penalty also reduces weight decay, the mean of 1 / P follows. A
/// slot that a set does not need is empty.
///
/// The micro-batches of a step see at most two versions or predictions (points) of a stage's
/// weights, the older one first. For a lent parameter the owner records 1 / P at both points. The
/// borrower keeps its gradients at the second point apart, so that the owner can penalise them.
struct GradientSets {
  int raw = 0, decay_share = 0;  // Set numbers. 0: there is no such set.
  int first_share = 0, later_share = 0, later = 0;
  int count = 1;

  static GradientSets of(const OptimizerConfig& config, const StalenessOptions& staleness);
};

}  // namespace troupe::models
