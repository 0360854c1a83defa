#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/learning_rate.h"

namespace troupe::models {

/// The configuration's [staleness] table: which weights the passes of a micro-batch see if
/// optimizer steps run between them, and how a late gradient is corrected. Without such steps no
/// option has an effect.
struct StalenessOptions {
  /// The weights of the forward pass: the newest, or those predicted for its backward pass.
  enum class Predict : std::uint8_t { none, msnag, aggmsnag, linear };
  /// The weights of the backward pass: the newest, those of its forward pass (weight stashing), or
  /// an estimate of the forward pass's weights from their drift (PipeMare's T2).
  enum class LinearizeAt : std::uint8_t { current, forward, extrapolated };
  /// Whether a stage divides gradients by 1 + the distance that its weights moved between the
  /// passes: each element by its own distance, or a tensor by one number.
  enum class GapPenalty : std::uint8_t { none, elementwise, tensor_norm };
  /// The source of a stage's old weights: a copy that it keeps, or its last update.
  enum class GapSource : std::uint8_t { stash, last_update };
  enum class GapStatistics : std::uint8_t { corrected, ftpipe };
  enum class GapScale : std::uint8_t { step_ema, max_lr };
  /// How a stage passes its gap to earlier stages: it scales down the gradient that it sends, or
  /// sends its gap as a number, and each stage uses the largest number.
  enum class GapFactor : std::uint8_t { none, scalar, max };
  enum class SecondMoment : std::uint8_t { guarded, frozen };
  /// The treatment of a round's last step if it has fewer micro-batches: drop them, take a shorter
  /// step along their mean, or take a step that is shortened twice, as in FTPipe.
  enum class Remainder : std::uint8_t { drop, renorm, ftpipe };
  /// How a stage clips. Each stage uses the norm of its own gradients, because no stage waits for
  /// another: against the whole bound, or against its share of the bound.
  enum class Clip : std::uint8_t { local, local_sqrt_share };

  Predict predict = Predict::none;
  LinearizeAt linearize_at = LinearizeAt::current;
  GapPenalty gap_penalty = GapPenalty::none;
  GapSource gap_source = GapSource::stash;
  GapStatistics gap_statistics = GapStatistics::corrected;
  GapScale gap_scale = GapScale::step_ema;
  GapFactor gap_factor = GapFactor::none;
  SecondMoment second_moment = SecondMoment::guarded;
  bool nag = false;        // Passes without delay see predicted weights.
  bool nag_return = true;  // Their backward passes see these weights, too, not the newest.
  Remainder remainder = Remainder::renorm;
  Clip clip = Clip::local;
  /// Steps by which the weights of all passes on all stages lag behind. 0: passes see the newest
  /// ones. 1 is PipeDream-2BW.
  int lag = 0;
  /// PipeMare's T3: the number of steps at the start of a run that each end with a drain of the
  /// pipeline, so that no weight is stale.
  std::int64_t synchronous_steps = 0;
  /// PipeMare's T1: steps after the synchronous ones during which the learning rate of a late stage
  /// rises to the full rate.
  std::int64_t anneal_steps = 0;
  /// PipeMare's D of T2: the fraction of older drift that remains after a micro-batch's delay.
  double drift_memory = 0.135;
  /// DC-ASGD's lambda: g + lambda g g (now - then).
  double delay_compensation = 0;
  /// Kosson et al.: a late gradient makes up at once for the steps that it missed. For sgd.
  bool spike_compensation = false;
  std::optional<int> step_every;            // Micro-batches of a replica per optimizer step.
  std::optional<std::int64_t> flush_every;  // Micro-batches between drains. Unset: 64 steps.
};

/// Returns whether a stage corrects late gradients by how far the weights have moved.
bool mends_gradients(const StalenessOptions& staleness);

/// Returns whether a stage compares how far its weights moved between the passes of a micro-batch
/// with how far they usually move.
bool measures_gaps(const StalenessOptions& staleness);

/// Returns whether a stage divides its gradients by the largest gap of itself and later stages.
bool divides_by_gap_factor(const StalenessOptions& staleness);

/// Returns whether passes without delay see predicted weights.
bool looks_ahead(const StalenessOptions& staleness);

/// The delays of a stage, as its optimizer needs to know them.
struct Lateness {
  StalenessOptions staleness;
  /// Steps between the passes of a micro-batch, once the pipeline is full.
  int delay = 0;
  /// Parameters that another stage owns. They get neither moments nor steps here.
  std::vector<std::string> borrowed;
};

/// Returns the steps between the passes of micro-batch m of a round, on a stage that runs `depth`
/// forward passes ahead.
int delay_of(int m, int depth, int step_every);

/// Returns how many forward passes a stage may run ahead if the pipeline holds at most `cap`
/// micro-batches. `depth` lies in [0, deepest].
int virtual_depth(int depth, int deepest, int cap);

/// Returns the learning rate of a stage's step. With T1 it is the rate divided by delay^(1 - step /
/// anneal); `step` counts from the first late step.
double late_rate(const LearningRate& rate, const Lateness& lateness, std::int64_t step);

/// Returns the clipping bound of one stage, given its number of parameters and that of all stages.
double clip_norm_of(const StalenessOptions& staleness, double clip_norm, std::int64_t parameters,
                    std::int64_t of_all_stages);

/// Returns base^exponent for an exponent in [0, 1]. It uses square roots, which have the same bits
/// on every machine; the C library's pow does not.
double fractional_power(double base, double exponent);

}  // namespace troupe::models
