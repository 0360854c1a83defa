#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "models/stale/gap.h"
#include "models/stale/weight_points.h"
#include "models/staleness.h"
#include "models/train/optimizer.h"
#include "models/train/stage.h"

namespace troupe::models {

/// The micro-batches between two drains of a pipeline: one step's, or many steps' if optimizer
/// steps run between the passes.
struct Round {
  /// For each micro-batch, this stage's steps between its forward and its backward pass.
  std::vector<int> delays;
  /// Backward passes of this stage per step. The last step may have fewer.
  int step_every = 1;
  /// This stage's part of every step's micro-batches.
  Share share;
  std::int64_t targets_in_step = 1;  // Targets of all shares together.
};

/// The weights of a tied parameter, sent by the stage that owns it.
struct Loan {
  std::string name;
  std::int64_t tag = 0;  // Equal tags mean equal numbers.
  Tensor value;
};

/// A stage with its choice of weights for each pass. It adopts the versions that its optimizer
/// publishes and holds an old one while a micro-batch needs it. Micro-batches are numbered from 0
/// in each round, equally on all stages.
///
/// A synchronous schedule uses default staleness: then nothing is held, copied or corrected.
class TrainingStage {
 public:
  /// `borrowed` are parameters that an earlier stage owns. check_shared() names the options that
  /// exclude them. The model must outlive the stage.
  TrainingStage(const Model& model, UnitRange units, const StageOptions& options,
                const StalenessOptions& staleness, const OptimizerConfig& optimizer,
                std::vector<std::string> borrowed);

  const Stage& passes() const { return stage_; }

  /// Starts a round. The one before must be finished and its gradients taken.
  void begin_round(Round round);

  /// Returns the version with every matrix packed for products. Packs matrices that have come as
  /// numbers alone. Frozen parameters that have not come are those of the version before.
  Version packed(Stream& stream, Version version) const;
  /// Makes `newest` the newest version.
  void adopt(Version newest) { points_.adopt(std::move(newest)); }
  std::int64_t version() const { return points_.version(); }

  /// Runs Stage's passes. `m.index` counts in the round, and forward passes come in that order.
  /// `loans` has one entry for each borrowed parameter, lent for the same micro-batch.
  Bundle forward(Stream& stream, const MicroBatch& m, Bundle input, Tensor targets,
                 std::span<const Loan> loans);
  void recompute(Stream& stream, int m);
  Bundle backward_input(Stream& stream, int m, Bundle dy);
  void backward_weight(Stream& stream, int m);
  Bundle backward(Stream& stream, int m, Bundle dy);

  /// Under GapFactor::max: sets the factor that came with a micro-batch's gradient, before its
  /// backward pass; and returns the factor to send with the last gradient.
  void expect_gap_factor(int m, double received);
  double gap_factor() const { return gap_factor_; }

  /// Returns what another stage needs to see the same weights for micro-batch `m`. Its forward pass
  /// was here and its backward pass is still to come.
  Loan lend(int m, const std::string& name) const;
  /// Returns the newest weights, for evaluation.
  Loan lend(const std::string& name) const;

  /// Returns the sum over the backward passes since the last step.
  GradientShare take_gradients(Stream& stream);

  /// Starts to gather metrics. The stage then holds forward weights longer. No result changes.
  void measure() { is_measured_ = true; }
  /// Returns the metrics since the last call.
  StalenessMetrics take_metrics();

  /// Evaluates with the newest weights and keeps nothing.
  Bundle evaluate(Stream& stream, Bundle input, Tensor targets, std::span<const Loan> loans) const;

 private:
  using Fixed = std::vector<std::pair<std::size_t, Weight>>;

  /// The weights that the passes of a micro-batch see.
  struct InFlight {
    int m = 0;
    std::int64_t version = 0;  // The newest at the forward pass.
    std::int64_t tag = 0;
    std::vector<std::int64_t> points;  // Its own tag, then the tags of its loans.
    bool returns = false;              // The backward pass sees the forward pass's weights.
    WeightsPtr forward;                // The forward pass's weights, if needed later.
    WeightsPtr origin;                 // The version they derive from, for metrics.
    WeightsPtr backward;               // Set by the first pass after the forward pass.
    Fixed loans;                       // Slots with the same weights in all passes.
    double gap_factor = 1;
  };
  struct Loaned {
    Loan loan;
    Fixed slots;
  };

  InFlight& find(int m);
  int window_of(int m) const { return m / round_.step_every; }
  int size_of(int window) const;
  bool is_remainder(int window) const { return size_of(window) < round_.step_every; }
  Share share_of(int window) const;
  std::int64_t targets_of(int window) const;
  int delay_of(int m) const;
  bool is_late() const;
  void begin_window();

  Horizon horizon(int delay) const;
  WeightsPtr forward_weights(Stream& stream, InFlight& flight, int delay);
  bool keeps_promise(const InFlight& flight) const;
  const Weights& backward_weights(Stream& stream, InFlight& flight);
  bool holds_forward(const InFlight& flight, int delay) const;
  const Weights* gap_begins(const InFlight& flight) const;
  Fixed take_loans(Stream& stream, std::span<const Loan> loans);
  Fixed loaned(Stream& stream, const Loan& loan) const;
  static WeightsPtr with(const WeightsPtr& weights, const Fixed& fixed);

  GapRules rules() const { return {config_, configs_, lateness_, stage_.parameters(), owned_}; }
  bool sees_later_point(const InFlight& flight, std::size_t whose);
  int at_point_of(int m) const;
  std::vector<std::size_t> borrowed_later(const InFlight& flight);
  Bundle tell_gap(Stream& stream, InFlight& flight, Bundle dx);
  void measure_gap(Stream& stream, const InFlight& flight);
  template <class Pass>
  Bundle mended(Stream& stream, InFlight& flight, Pass pass);

  Stage stage_;
  OptimizerConfig config_;
  Lateness lateness_;
  kernels::Precision precision_;
  std::vector<Slots> owned_;              // Without frozen parameters.
  std::vector<OptimizerConfig> configs_;  // Settings of the owned parameters.
  std::vector<std::size_t> lent_;         // Slots that later stages use, too.
  std::vector<Loaned> loaned_;            // The newest loans.
  WeightPoints points_;
  Round round_;
  int window_ = 0;
  std::int64_t first_version_ = 0;  // The version at the start of the round.
  std::vector<InFlight> flights_;
  std::vector<std::int64_t> first_points_;  // Points of the window's first micro-batch.
  double gap_factor_ = 1;

  bool is_measured_ = false;
  struct Measured {
    StalenessMetrics sums;
    int late = 0, passes = 0;
  } measured_;
};

}  // namespace troupe::models
