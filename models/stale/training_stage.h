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

/// Micro-batches between two drains of a pipeline: those of one step, or of many steps where steps
/// come amid the passes.
struct Round {
  /// Steps of this stage between the forward and the backward pass of each micro-batch.
  std::vector<int> delays;
  /// Backward passes of this stage from one step to the next. The last step may have fewer.
  int step_every = 1;
  /// What of every step's micro-batches passes here.
  Share share;
  std::int64_t targets_in_step = 1;  // Of all shares together.
};

/// Weights that a stage has from another one, which owns them: tied parameters.
struct Loan {
  std::string name;
  std::int64_t tag = 0;  // Equal tags: the same numbers.
  Tensor value;
};

/// A stage as it trains: beside the passes it knows which weights each of them sees. It adopts the
/// versions that its optimizer publishes, and holds an old one for as long as a micro-batch needs
/// it. Micro-batches are numbered from 0 in each round, and a number is the same on all stages.
///
/// A synchronous schedule wants default staleness: then nothing is held, copied or mended.
class TrainingStage {
 public:
  /// `borrowed` are parameters that an earlier stage owns; check_shared() says what cannot be had
  /// where there are any. The model must outlive this.
  TrainingStage(const Model& model, UnitRange units, const StageOptions& options,
                const StalenessOptions& staleness, const OptimizerConfig& optimizer,
                std::vector<std::string> borrowed);

  const Stage& passes() const { return stage_; }

  /// The round before is through, and its gradients were taken.
  void begin_round(Round round);

  /// A version that has come as numbers alone, with the forms that products want; any other one as
  /// it is.
  Version packed(Stream& stream, Version version) const;
  /// From now on the newest version.
  void adopt(Version newest) { points_.adopt(std::move(newest)); }
  std::int64_t version() const { return points_.version(); }

  /// As Stage has them. `m.index` counts in the round, and forward passes come in that order. The
  /// loans are those of the same micro-batch, one for each borrowed parameter.
  Tensor forward(Stream& stream, const MicroBatch& m, Tensor input, Tensor targets,
                 std::span<const Loan> loans);
  void recompute(Stream& stream, int m);
  Tensor backward_input(Stream& stream, int m, Tensor dy);
  void backward_weight(Stream& stream, int m);
  Tensor backward(Stream& stream, int m, Tensor dy);

  /// Under GapFactor::max: what came with the gradient of a micro-batch, before its backward pass;
  /// and what goes with that of the last one that came out.
  void expect_gap_factor(int m, double received);
  double gap_factor() const { return gap_factor_; }

  /// What another stage needs to see the same weights for micro-batch `m`, whose forward pass was
  /// here and whose backward pass is still to come.
  Loan lend(int m, const std::string& name) const;
  /// The same for evaluation.
  Loan lend(const std::string& name) const;

  /// The sum over the backward passes since the last step.
  GradientShare take_gradients(Stream& stream);

  /// From now on metrics are gathered, for which forward weights are held longer; no number
  /// changes.
  void measure() { is_measured_ = true; }
  /// Since they were taken last.
  StalenessMetrics take_metrics();

  /// Evaluation with the newest weights: nothing is kept.
  Tensor evaluate(Stream& stream, Tensor input, Tensor targets, std::span<const Loan> loans) const;

 private:
  using Fixed = std::vector<std::pair<std::size_t, Weight>>;

  /// Which weights the passes of a micro-batch see.
  struct InFlight {
    int m = 0;
    std::int64_t version = 0;  // The newest at the forward pass.
    std::int64_t tag = 0;
    std::vector<std::int64_t> points;  // The tag, and those of the loans.
    bool returns = false;              // The backward pass sees what the forward pass saw.
    WeightsPtr forward;                // What that was, where somebody will ask.
    WeightsPtr origin;                 // The version it came from, for metrics.
    WeightsPtr backward;               // From the first pass on that comes after the forward pass.
    Fixed loans;                       // Slots that see the same in all passes.
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

  GapRules rules() const { return {config_, lateness_, stage_.parameters(), owned_}; }
  bool sees_later_point(const InFlight& flight, std::size_t whose);
  int at_point_of(int m) const;
  std::vector<std::size_t> borrowed_later(const InFlight& flight);
  Tensor tell_gap(Stream& stream, InFlight& flight, Tensor dx);
  void measure_gap(Stream& stream, const InFlight& flight);
  template <class Pass>
  Tensor mended(Stream& stream, InFlight& flight, Pass pass);

  Stage stage_;
  OptimizerConfig config_;
  Lateness lateness_;
  kernels::Precision precision_;
  std::vector<Slots> owned_;
  std::vector<std::size_t> lent_;  // Slots that later stages use as well.
  std::vector<Loaned> loaned_;     // The last ones.
  WeightPoints points_;
  Round round_;
  int window_ = 0;
  std::int64_t first_version_ = 0;  // Of the round.
  std::vector<InFlight> flights_;
  std::vector<std::int64_t> first_points_;  // Of the window's first micro-batch.
  double gap_factor_ = 1;

  bool is_measured_ = false;
  struct Measured {
    StalenessMetrics sums;
    int late = 0, passes = 0;
  } measured_;
};

}  // namespace troupe::models
