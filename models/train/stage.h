#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/memory/steady_memory.h"
#include "core/memory/stream.h"
#include "models/layers/parts.h"
#include "models/model.h"
#include "models/train/gradient_fold.h"

namespace troupe::models {

/// A range of a model's units, [first, last).
struct UnitRange {
  int first = 0;
  int last = 0;
};

/// Whether a stage keeps everything that its backward passes need, or keeps its input and
/// recomputes the rest (activation checkpointing).
enum class Keep : std::uint8_t { everything, input };

struct StageOptions {
  kernels::Precision precision = kernels::Precision::fp32;
  Keep keep = Keep::everything;
  std::uint64_t seed = 0;
  /// A pass over at most this many rows (tokens, samples or lines of images) is short. On a device,
  /// launching its kernels one by one would take much of its time. So it uses the same memory each
  /// time, and the device may replay it.
  std::int64_t short_rows = 4096;
};

/// How many targets some micro-batches have by their shape, and how many of these count.
struct TargetCount {
  std::int64_t all = 0;
  std::int64_t counted = 0;

  bool none_counts() const { return all > 0 && counted == 0; }
  /// Returns the factor from sums over `all` equal weights to means over those that count: exactly
  /// 1 if all count.
  double to_mean() const {
    return counted == all || counted == 0 ? 1
                                          : static_cast<double>(all) / static_cast<double>(counted);
  }
  TargetCount& operator+=(const TargetCount& other) {
    all += other.all;
    counted += other.counted;
    return *this;
  }
  friend bool operator==(const TargetCount&, const TargetCount&) = default;
};

/// The identity of a micro-batch. Micro-batches in flight have distinct indices.
struct MicroBatch {
  std::int64_t step = 0;
  int index = 0;
  std::int64_t first_sample = 0;  // Its position in the step's batch.
  TargetCount targets = {};
};

/// The losses of a micro-batch, one for each target, and 0 for one that does not count.
struct Losses {
  Tensor each;         // [targets], in host memory.
  double sum() const;  // In the order of the targets.
  /// Returns the mean over as many targets, or 0 if none counts.
  double mean(std::int64_t counted) const;
};

/// The mean loss of a micro-batch, and how many of its targets count.
struct MeanLoss {
  double mean = 0;
  std::int64_t counted = 0;
};

/// Returns the mean over all targets that count, or 0 if none does. Sums in the given order. If
/// equally many count in each micro-batch, it is the mean of their means, to the bit.
double mean_of(std::span<const MeanLoss> losses);

/// The gradients of a stage over a step, and statistics for its buffers. Moved as a whole.
struct StageGradients {
  /// Indexed by parameter slot; a tied parameter has one for each use. If late gradients were
  /// corrected, more sets of the same size follow (GradientSets).
  std::vector<Tensor> slots;
  std::vector<std::vector<Tensor>> statistics;  // Indexed by micro-batch in order, then by buffer.
  double rate_share = 1;     // The factor on the learning rate of a step with fewer micro-batches.
  TargetCount targets = {};  // The step's.
};

/// The part of a stage's gradients that one replica has.
struct GradientShare {
  std::vector<PartialSum> sums;
  std::vector<std::vector<Tensor>> statistics;  // For the share's micro-batches.
  double rate_share = 1;                        // Equal in all shares.
  TargetCount targets = {};                     // The share's.
};

/// A correction of a late micro-batch's gradients before they join the sum.
class GradientMend {
 public:
  virtual ~GradientMend() = default;
  /// Returns how many sets of tensors the sum has: the gradients and the sets that mend() fills.
  virtual int sets() const = 0;
  /// Corrects the gradients in `tensors`, which also has memory for the other sets.
  virtual void mend(Stream& stream, std::span<Tensor> tensors) = 0;
};

/// Combines the shares of a step, given in the order of their groups. Copies tensors to the
/// stream's device if they lie elsewhere.
StageGradients join(Stream& stream, std::vector<GradientShare> shares);

/// The next tokens of a text, as a stage receives them: the tokens, or the rows that the stage
/// before made of them, and what does not depend on the text.
struct NextTokens {
  Bundle bundle;
  std::int64_t count = 0;
};

/// A text that a stage continues, and what its layers keep of the tokens so far.
struct ContinuedText {
  std::int64_t most = 0;    // The tokens that there is room for.
  std::int64_t tokens = 0;  // The tokens that the stage has seen.
  std::vector<Tensor> caches;
};

/// Consecutive units that one device computes, and the state of the micro-batches in flight. It
/// owns no weights: the caller names the version for every pass. Gradients are added in the order
/// of the reduction groups: a left fold by micro-batch within a group, one fixed binary tree across
/// groups. So the sum does not depend on the devices. Input tensors may lie on the host or on
/// another device; output tensors lie where the stream computes. A received value is held from the
/// forward to the backward pass only if a layer saves it; otherwise the handle passes on.
class Stage {
 public:
  /// The model must outlive its stages.
  Stage(const Model& model, UnitRange units, const StageOptions& options);

  /// Returns one slot for each parameter that a layer declares, in the order of the layers.
  const std::vector<Parameter>& parameters() const { return parts_.parameters(); }
  const std::vector<Buffer>& buffers() const { return parts_.buffers(); }
  bool is_last() const { return end_ == End::loss; }
  /// Returns whether the previous stage gets a gradient: it does if a stage before this one has a
  /// parameter that is trained.
  bool gives_gradient() const { return gives_gradient_; }

  /// Starts the step that this share's micro-batches belong to. The caller must have taken the
  /// gradients of the step before. Micro-batches may be in flight.
  void begin_step(const Share& share, std::int64_t targets_in_step);
  /// Sets the number of targets in the step, for micro-batches whose forward pass is still to come.
  void expect_targets(std::int64_t targets_in_step);

  /// Returns the activation for the next stage, or on the last stage the losses, [targets].
  Bundle forward(Stream& stream, const MicroBatch& m, const Weights& weights, Bundle input,
                 Tensor targets = {});
  /// Recomputes what `Keep::input` dropped. Only in that mode, between the two passes.
  void recompute(Stream& stream, int m, const Weights& weights);
  /// Returns the gradient for the previous stage; empty if nobody wants one, as on the first. The
  /// last stage ignores `dy`, and so does a stage with nothing to train here or before.
  Bundle backward_input(Stream& stream, int m, const Weights& weights, Bundle dy);
  /// Adds the gradients of a micro-batch to the sum. Call it in the order of the fold. If one
  /// micro-batch of a step has a mend, all must have one.
  void backward_weight(Stream& stream, int m, const Weights& weights, GradientMend* mend = nullptr);
  /// Runs both halves of the backward pass.
  Bundle backward(Stream& stream, int m, const Weights& weights, Bundle dy,
                  GradientMend* mend = nullptr);

  /// Returns how many micro-batches are in the gradient sum.
  int folded() const { return fold_.done(); }
  /// Returns one slot of that sum, or an empty tensor.
  Tensor gradient_so_far(Stream& stream, std::size_t slot) const {
    return fold_.so_far(stream, slot);
  }

  /// Returns the gradient sums. All micro-batches of the share must be finished.
  GradientShare take_gradients();

  /// Evaluates and keeps nothing. The last stage returns losses, or logits if there are no targets.
  Bundle evaluate(Stream& stream, const Weights& weights, Bundle input, Tensor targets = {}) const;

  /// Begins a text of at most so many tokens. Its first pass allocates all caches. Only if the
  /// model continues_from() the stage's first unit.
  ContinuedText begin_text(std::int64_t most) const;
  /// Evaluates the next tokens of the text, a sample of its own, on the cores. The rows have the
  /// bits that evaluate() gives them for the whole text so far. What does not depend on the text is
  /// the same in each call.
  Bundle continue_text(Stream& stream, const Weights& weights, NextTokens next,
                       ContinuedText& text) const;

  int in_flight() const;

 private:
  enum class End : std::uint8_t { hand_over, loss };
  /// The next pass of a micro-batch.
  enum class Phase : std::uint8_t { unused, recompute, backward, backward_weight };

  /// The state of a micro-batch in flight. The place of a finished one is used again.
  struct InFlight {
    Phase next = Phase::unused;
    MicroBatch id;
    bool is_short = false;
    Bundle input;  // Only with Keep::input.
    Tensor targets;
    float loss_gradient = 1;
    std::vector<Tensor> saved;
    std::vector<Tensor> statistics;
  };

  enum Passing : SteadyMemory::Work {
    pass_forward,
    pass_again,
    pass_input,
    pass_weight,
    pass_both,
    pass_mend,
    pass_statistics
  };

  template <class Body>
  void repeat(Stream& stream, const InFlight& place, SteadyMemory::Work work, Body body);
  SteadyMemory::Work folding(Passing pass, const GradientMend* mend) const;

  InFlight& free_place();
  InFlight& find(int m, Phase next);
  Pass pass_of(Stream& stream, const InFlight& place, Frame& frame) const;
  Layer::In whole(const Pass& pass, const Weights& weights, int part) const;
  Bundle run(const Pass& pass, const Weights& weights, Bundle input, Keep keep,
             std::vector<Tensor>& saved, std::vector<Tensor>& statistics,
             std::span<Tensor> caches = {}) const;
  Tensor begin_backward(const Pass& pass, Bundle dy) const;
  Bundle end_backward(const Pass& pass, Tensor dx) const;
  std::span<Tensor> open_gradients(Stream& stream, const GradientMend* mend);
  void finish(Stream& stream, InFlight& place, std::span<Tensor> tensors, GradientMend* mend);
  void keep_statistics(Stream& stream, InFlight& place);

  Parts parts_;  // The units and, on the last stage, the loss.
  InputGradient input_gradient_ = InputGradient::wanted;
  bool gives_gradient_ = true;
  int first_trained_ = 0;                               // Backward passes end with this part.
  std::size_t kept_ = 0;                                // The number of the model's kept values.
  std::vector<int> taken_, given_;                      // Numbers of those that cross its cuts.
  std::vector<int> taken_gradients_, given_gradients_;  // Numbers of these with gradients.
  std::vector<std::vector<int>> read_last_;             // Numbers by part; empty if none is kept.
  End end_ = End::hand_over;
  StageOptions options_;
  float target_share_ = 1;  // The weight of each target in the step.
  std::vector<InFlight> places_;
  SteadyMemory memory_;
  GradientFold fold_;
  std::vector<std::vector<Tensor>> statistics_;
  TargetCount targets_;  // The targets that the gradient sum is of.
};

}  // namespace troupe::models
