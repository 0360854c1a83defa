#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/memory/stream.h"
#include "kernels/late.h"
#include "models/staleness.h"
#include "models/train/optimizer.h"
#include "models/train/stage.h"
#include "models/train/trained.h"

namespace troupe::models {

/// Statistics of a stage's late gradients.
struct StalenessMetrics {
  std::vector<int> delays;  // The number of micro-batches by delay in steps.
  /// Averages over late micro-batches: the distance from the forward pass's weights to the newest,
  /// and that divided by how far the weights moved (below 1 the prediction helps).
  double gap = 0;
  double prediction_error = 0;
  double penalty_mean = 1;
  double penalty_most = 1;
};

/// The settings that all micro-batches of a stage share.
struct GapRules {
  const OptimizerConfig& config;
  const std::vector<OptimizerConfig>& configs;  // Settings of owned parameters, in their order.
  const Lateness& lateness;
  const std::vector<Parameter>& parameters;
  const std::vector<Slots>& owned;  // Without frozen parameters.
};

/// The gap of a late micro-batch: how far the stage's weights are from those that its forward pass
/// saw, and how far is usual. The index `i` of a parameter is its place in `owned`.
class Gap {
 public:
  /// If `then` is null, derives the old weights from the last update.
  Gap(const GapRules& rules, const Version& now, const Weights* then)
      : rules_(rules), now_(now), then_(then) {}

  const Tensor& now(std::size_t i) const;
  Tensor then(Stream& stream, std::size_t i) const;
  /// The squared norms of a parameter's gap and of its usual step.
  struct Squares {
    double gap = 0, usual = 0;
  };
  /// Returns the squares of all parameters; empty if gaps have no scale. Waits once.
  std::vector<Squares> squares(Stream& stream) const;
  /// Returns 1 / P for each element; empty if all are 1. A penalty by norms reads `squares`.
  Tensor share(Stream& stream, std::size_t i, std::span<const Squares> squares) const;
  /// Divides the gradient by P without a tensor of P. Returns false if it cannot.
  bool penalises_at_once(Stream& stream, std::size_t i, Tensor& gradient) const;
  /// Returns the P of the whole stage: 1 + |gap| / |usual step|.
  double factor(Stream& stream) const;

 private:
  bool is_known() const;
  const UpdateRule& update_rule(std::size_t i) const;
  const Tensor& spread(std::size_t i) const;
  const Tensor& last_move(std::size_t i) const;
  kernels::UsualStep usual_step(std::size_t i) const;
  /// Returns the usual size of a step, element by element.
  Tensor usual(Stream& stream, std::size_t i) const;
  void by_element(Stream& stream, std::size_t i, Tensor* share, Tensor* gradient) const;

  const GapRules& rules_;
  const Version& now_;
  const Weights* then_;
};

/// The correction of one micro-batch's gradients: divides them by their penalties, or compensates
/// the delay.
class LateGradients final : public GradientMend {
 public:
  struct Of {
    const Gap* gap = nullptr;  // Null: the micro-batch is not late.
    double weight = 1;         // Its weight in the mean of a step.
    double factor = 1;         // A second divisor of its gradients, besides P.
    /// A step's micro-batches may see two points of the weights: whether this one saw the second,
    /// and its weight among those that saw the same point.
    bool is_later = false;
    double weight_at_point = 1;
    std::vector<std::size_t> lent = {};   // Slots that later stages use, too.
    std::vector<std::size_t> later = {};  // Borrowed slots whose second point it saw.
  };
  LateGradients(const GapRules& rules, Of of);

  int sets() const override { return sets_.count; }
  void mend(Stream& stream, std::span<Tensor> tensors) override;

  /// Starts to collect statistics of the penalties.
  void measure() { is_measured_ = true; }
  double penalty_mean() const { return elements_ > 0 ? penalty_sum_ / elements_ : 1; }
  double penalty_most() const { return penalty_most_; }

 private:
  bool is_share_wanted(std::size_t i) const;
  Tensor& in_set(std::span<Tensor> tensors, int set, std::size_t slot) const;
  void keep_raw(Stream& stream, std::span<Tensor> tensors);
  void penalise(Stream& stream, std::size_t i, std::span<Tensor> tensors);
  void compensate(Stream& stream, std::size_t i, std::span<Tensor> tensors);
  void note(Stream& stream, const Tensor& share, std::int64_t count);
  std::int64_t blocks_of_all() const;
  void add_noted(Stream& stream);

  const GapRules& rules_;
  Of of_;
  GradientSets sets_;
  std::vector<Gap::Squares> squares_;  // For penalties by norms.
  bool is_measured_ = false;
  Tensor noted_;  // kernels::Inverses of the blocks of all shares.
  std::int64_t noted_blocks_ = 0;
  double penalty_sum_ = 0, penalty_most_ = 1, elements_ = 0;
};

}  // namespace troupe::models
