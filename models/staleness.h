#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/learning_rate.h"

namespace troupe::models {

/// What `staleness` says in the configuration: which weights the passes of a micro-batch see when
/// steps come between them, and how a late gradient is mended. Without steps between passes none of
/// it changes anything.
struct StalenessOptions {
  /// What the forward pass sees: the newest weights, or those expected at the backward pass.
  enum class Predict : std::uint8_t { none, msnag, aggmsnag, linear };
  /// Where the backward pass linearises: at the newest weights; at those of the forward pass, which
  /// is weight stashing; or at what the drift of the weights tells of those (PipeMare's T2).
  enum class LinearizeAt : std::uint8_t { current, forward, extrapolated };
  /// Whether gradients are divided by 1 + the distance of weights between the passes: each by its
  /// own, or a tensor's by one number.
  enum class GapPenalty : std::uint8_t { none, elementwise, tensor_norm };
  /// Where the distance comes from: the old weights are held, or the last update tells it.
  enum class GapSource : std::uint8_t { stash, last_update };
  enum class GapStatistics : std::uint8_t { corrected, ftpipe };
  enum class GapScale : std::uint8_t { step_ema, max_lr };
  /// Whether the stages before are told of this one's gap: by a smaller gradient, or by a number
  /// beside it, of which the largest counts.
  enum class GapFactor : std::uint8_t { none, scalar, max };
  enum class SecondMoment : std::uint8_t { guarded, frozen };
  /// What the last step of a round is where it has fewer micro-batches: left out; a shorter step
  /// along their mean; or one that is shortened twice, as FTPipe has it.
  enum class Remainder : std::uint8_t { drop, renorm, ftpipe };
  /// Each stage by its own norm, for no stage waits for the others: against the whole bound, or
  /// against its share of it.
  enum class Clip : std::uint8_t { local, local_sqrt_share };

  Predict predict = Predict::none;
  LinearizeAt linearize_at = LinearizeAt::current;
  GapPenalty gap_penalty = GapPenalty::none;
  GapSource gap_source = GapSource::stash;
  GapStatistics gap_statistics = GapStatistics::corrected;
  GapScale gap_scale = GapScale::step_ema;
  GapFactor gap_factor = GapFactor::none;
  SecondMoment second_moment = SecondMoment::guarded;
  bool nag = false;        // A pass without delay looks a step ahead.
  bool nag_return = true;  // Its backward pass sees what it saw, not the newest weights.
  Remainder remainder = Remainder::renorm;
  Clip clip = Clip::local;
  /// Steps that the weights of all passes, on all stages, lie behind; 0: the newest are seen. 1 is
  /// PipeDream-2BW.
  int lag = 0;
  /// PipeMare's T3: the first steps of a run, after each of which the pipeline drains, so that no
  /// weight is stale.
  std::int64_t synchronous_steps = 0;
  /// PipeMare's T1: steps after those in which the learning rate of a late stage rises to that of
  /// the others.
  std::int64_t anneal_steps = 0;
  /// PipeMare's D of T2: what is left of the drift's memory after a micro-batch's delay.
  double drift_memory = 0.135;
  /// DC-ASGD's lambda: g + lambda g g (now - then).
  double delay_compensation = 0;
  /// Kosson et al.: the steps that a gradient missed are made up for when it comes. For sgd.
  bool spike_compensation = false;
  std::optional<int> step_every;            // Micro-batches of a replica in one optimizer step.
  std::optional<std::int64_t> flush_every;  // Micro-batches between drains; nothing: 64 steps.
};

/// Whether late gradients are changed by how far the weights have moved.
bool mends_gradients(const StalenessOptions& staleness);

/// Returns whether a stage measures how far its weights moved between the passes of a micro-batch,
/// against how far they usually move.
bool measures_gaps(const StalenessOptions& staleness);

/// Returns whether a stage divides its gradients by the largest gap of the stages behind.
bool divides_by_gap_factor(const StalenessOptions& staleness);

/// Returns whether passes without delay see predicted weights.
bool looks_ahead(const StalenessOptions& staleness);

/// What a stage's optimizer knows of how the stage is trained.
struct Lateness {
  StalenessOptions staleness;
  /// Steps between the passes of a micro-batch, once the pipeline is full.
  int delay = 0;
  /// Parameters that another stage owns: they get neither moments nor steps.
  std::vector<std::string> borrowed;
};

/// Steps between the passes of micro-batch m of a round, on a stage that runs `depth` forward
/// passes ahead.
int delay_of(int m, int depth, int step_every);

/// How far a stage may run ahead where only so many micro-batches fit into the pipeline, for
/// `depth` in [0, deepest].
int virtual_depth(int depth, int deepest, int cap);

/// The learning rate of a stage's step: with T1, the rate divided by delay^(1 - step / anneal), the
/// steps counted from the first one that is late.
double late_rate(const LearningRate& rate, const Lateness& lateness, std::int64_t step);

/// The bound on one stage's gradient that its share of the parameters leaves it.
double clip_norm_of(const StalenessOptions& staleness, double clip_norm, std::int64_t parameters,
                    std::int64_t of_all_stages);

/// base^exponent for an exponent in [0, 1]: equal on every machine, as square roots are and the C
/// library's pow is not.
double fractional_power(double base, double exponent);

}  // namespace troupe::models
