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

/// The parameters that a stage owns, in the order in which it first meets their names: moments come
/// in this order.
std::vector<Slots> owned_slots(const std::vector<Parameter>& parameters,
                               const std::vector<std::string>& borrowed);

/// A parameter's numbers as layers see them: a matrix is packed.
Weight weight_of(Stream& stream, const Parameter& parameter, kernels::Precision precision,
                 Tensor value);

/// Names the moments that an optimizer keeps for a parameter: those of the rule, then "spread", the
/// average of its squared steps, "last_move", what the last step added to the weights, and "drift",
/// the average direction of its steps. The last three are kept only if a policy reads them.
std::vector<std::string_view> moment_names(const UpdateRule& rule, const OptimizerConfig& config,
                                           const StalenessOptions& staleness);
inline constexpr std::string_view spread_name = "spread", last_move_name = "last_move",
                                  drift_name = "drift";

/// Returns whether gaps are measured by the last update, but the moments of the rules do not tell
/// it.
bool keeps_last_move(const OptimizerConfig& config, const StalenessOptions& staleness);

/// Names the sets of tensors that the sum over a step's micro-batches has, one tensor of a set for
/// each slot. The gradients come first. If penalties divide the gradients, the gradients before the
/// division follow: clipping and reports use their norm. The mean of 1 / P follows if it penalises
/// weight decay, too. The tensor of a slot is empty in a set that does not need it.
///
/// The micro-batches of a step see two points of a stage's weights at most, the older one first. Of
/// a parameter that is lent, the owner tells 1 / P at both; the borrower gives the gradients at the
/// second point apart, so that the owner can penalise them when they come.
struct GradientSets {
  int raw = 0, decay_share = 0;  // 0: there is no such set.
  int first_share = 0, later_share = 0, later = 0;
  int count = 1;

  static GradientSets of(const OptimizerConfig& config, const StalenessOptions& staleness);
};

}  // namespace troupe::models
