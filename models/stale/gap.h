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

/// What a stage tells of its late gradients. Changes none of them.
struct StalenessMetrics {
  std::vector<int> delays;  // How many micro-batches came so many steps late.
  /// Of the late ones, on average: how far the weights were from those that the forward pass saw,
  /// summed over tensors, and that against how far they went (below 1 a prediction helps).
  double gap = 0;
  double prediction_error = 0;
  double penalty_mean = 1;
  double penalty_most = 1;
};

/// What is the same for all micro-batches of a stage.
struct GapRules {
  const OptimizerConfig& config;
  const Lateness& lateness;
  const std::vector<Parameter>& parameters;
  const std::vector<Slots>& owned;
};

/// How far a stage's weights are from those that the forward pass of a late micro-batch saw, and
/// how far is usual. Parameters go by their place in `owned`.
class Gap {
 public:
  /// If `then` is null, the last update tells those weights.
  Gap(const GapRules& rules, const Version& now, const Weights* then)
      : rules_(rules), now_(now), then_(then) {}

  const Tensor& now(std::size_t i) const;
  Tensor then(Stream& stream, std::size_t i) const;
  /// 1 / P; empty where all of it is 1.
  Tensor share(Stream& stream, std::size_t i) const;
  /// Whether gradient /= P was done without making a tensor of P.
  bool penalises_at_once(Stream& stream, std::size_t i, Tensor& gradient) const;
  /// The P of the whole stage: 1 + |gap| / |usual|.
  double factor(Stream& stream) const;

 private:
  bool is_known() const;
  const UpdateRule& update_rule(std::size_t i) const;
  const Tensor& spread(std::size_t i) const;
  const Tensor& last_move(std::size_t i) const;
  kernels::UsualStep usual_step(std::size_t i) const;
  /// A step as it usually is, element by element.
  Tensor usual(Stream& stream, std::size_t i) const;
  void by_element(Stream& stream, std::size_t i, Tensor* share, Tensor* gradient) const;
  double length(Stream& stream, std::size_t i) const;

  const GapRules& rules_;
  const Version& now_;
  const Weights* then_;
};

/// Mends the gradients of one micro-batch: divides them by their penalties, or makes up for the
/// delay.
class LateGradients final : public GradientMend {
 public:
  struct Of {
    const Gap* gap = nullptr;  // Null: it came in time.
    double weight = 1;         // What it counts in the mean of a step.
    double factor = 1;         // By which its gradients are divided anyway.
    /// Of the two points that its step's micro-batches may see: whether it saw the second, and what
    /// it counts among those that saw the same.
    bool is_later = false;
    double weight_at_point = 1;
    std::vector<std::size_t> lent = {};   // Slots that later stages use as well.
    std::vector<std::size_t> later = {};  // Borrowed ones, of which it saw the second point.
  };
  LateGradients(const GapRules& rules, Of of);

  int sets() const override { return sets_.count; }
  void mend(Stream& stream, std::span<Tensor> tensors) override;

  /// To learn of the penalties.
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

  const GapRules& rules_;
  Of of_;
  GradientSets sets_;
  bool is_measured_ = false;
  double penalty_sum_ = 0, penalty_most_ = 1, elements_ = 0;
};

}  // namespace troupe::models
