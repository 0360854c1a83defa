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

/// Whether a stage keeps all that its backward passes need, or its input alone and computes the
/// rest again.
enum class Keep : std::uint8_t { everything, input };

struct StageOptions {
  kernels::Precision precision = kernels::Precision::fp32;
  Keep keep = Keep::everything;
  std::uint64_t seed = 0;
  /// A pass over at most so many rows, which are tokens, samples, or lines of images, is short: on
  /// a device much of its time would go into giving kernels one by one. So its memory is the same
  /// each time, and the device is told that it will come again.
  std::int64_t short_rows = 4096;
};

/// Which micro-batch it is. No two that are in flight have the same index.
struct MicroBatch {
  std::int64_t step = 0;
  int index = 0;
  std::int64_t first_sample = 0;  // Its position in the step's batch.
};

/// What a micro-batch's last forward pass tells: the loss of each target.
struct Losses {
  Tensor each;         // [targets], with the host.
  double sum() const;  // In the order of the targets.
  double mean() const;
};

/// The gradients of a stage over a step, and what its buffers shall take: given away whole.
struct StageGradients {
  /// By parameter slot; tied parameters: one for each use. Behind them, where late gradients were
  /// mended, further sets of as many (GradientSets).
  std::vector<Tensor> slots;
  std::vector<std::vector<Tensor>> statistics;  // By micro-batch in order, then by buffer.
  double rate_share = 1;  // Of the learning rate: a step with fewer micro-batches is shorter.
};

/// What one holder of a stage has of them.
struct GradientShare {
  std::vector<PartialSum> sums;
  std::vector<std::vector<Tensor>> statistics;  // Of the share's micro-batches.
  double rate_share = 1;                        // The same in all shares.
};

/// What happens to the gradients of a late micro-batch before they join those of others.
class GradientMend {
 public:
  virtual ~GradientMend() = default;
  /// How many sets of tensors the sum has: the gradients, and what this leaves beside them.
  virtual int sets() const = 0;
  /// The gradients are there, and memory for the other sets.
  virtual void mend(Stream& stream, std::span<Tensor> tensors) = 0;
};

/// Puts the shares of a step together, which come in the order of their groups and from wherever
/// they lie.
StageGradients join(Stream& stream, std::vector<GradientShare> shares);

/// Consecutive units as one device computes them, with what the micro-batches in flight left
/// behind. Weights are not its own: every pass is told which version it sees. Gradients are added
/// up in the order of the reduction groups: within a group a left fold by micro-batch, across
/// groups one fixed binary tree; so the sum knows nothing of devices. What comes in may lie with
/// the host or with another device; what goes out lies where the stream computes.
class Stage {
 public:
  /// The model must outlive its stages.
  Stage(const Model& model, UnitRange units, const StageOptions& options);

  /// One slot for each parameter that a layer declares, in the order of the layers.
  const std::vector<Parameter>& parameters() const { return parts_.parameters(); }
  const std::vector<Buffer>& buffers() const { return parts_.buffers(); }
  bool is_last() const { return end_ == End::loss; }

  /// Starts a step that this share's micro-batches belong to. The gradients of the step before must
  /// have been taken; micro-batches may be in flight.
  void begin_step(const Share& share, std::int64_t targets_in_step);
  /// For micro-batches whose forward pass comes from now on: how many targets their step has.
  void expect_targets(std::int64_t targets_in_step);

  /// What goes to the next stage. On the last stage: the losses, [targets].
  Tensor forward(Stream& stream, const MicroBatch& m, const Weights& weights, Tensor input,
                 Tensor targets = {});
  /// Makes again what `Keep::input` did not keep. Only in that mode, between the two passes.
  void recompute(Stream& stream, int m, const Weights& weights);
  /// What goes to the previous stage; empty on the first. `dy` is not looked at on the last stage.
  Tensor backward_input(Stream& stream, int m, const Weights& weights, Tensor dy);
  /// Micro-batches come here in the order in which they are folded. With a mend for one micro-batch
  /// of a step there is one for each of them.
  void backward_weight(Stream& stream, int m, const Weights& weights, GradientMend* mend = nullptr);
  /// Both halves.
  Tensor backward(Stream& stream, int m, const Weights& weights, Tensor dy,
                  GradientMend* mend = nullptr);

  /// Micro-batches whose gradients are in the sum.
  int folded() const { return fold_.done(); }
  /// That sum for one slot; empty where there is none.
  Tensor gradient_so_far(Stream& stream, std::size_t slot) const {
    return fold_.so_far(stream, slot);
  }

  /// The sums over the share's micro-batches. All of them must be through.
  GradientShare take_gradients();

  /// Evaluation: nothing is kept. Logits on the last stage where there are no targets, losses where
  /// there are.
  Tensor evaluate(Stream& stream, const Weights& weights, Tensor input, Tensor targets = {}) const;

  int in_flight() const;

 private:
  enum class End : std::uint8_t { hand_over, loss };
  /// What comes next for a micro-batch.
  enum class Phase : std::uint8_t { unused, recompute, backward, backward_weight };

  /// What a micro-batch left behind. A place that is done is taken by another one.
  struct InFlight {
    Phase next = Phase::unused;
    MicroBatch id;
    bool is_short = false;
    Tensor input;  // Under Keep::input.
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
  Pass pass_of(Stream& stream, const InFlight& place) const;
  Layer::In whole(const Pass& pass, const Weights& weights, int part) const;
  Tensor run(const Pass& pass, const Weights& weights, Tensor x, Keep keep,
             std::vector<Tensor>& saved, std::vector<Tensor>& statistics) const;
  std::span<Tensor> open_gradients(Stream& stream, const GradientMend* mend);
  void finish(Stream& stream, InFlight& place, std::span<Tensor> tensors, GradientMend* mend);
  void keep_statistics(Stream& stream, InFlight& place);

  Parts parts_;  // The units, and on the last stage the loss.
  InputGradient input_gradient_ = InputGradient::wanted;
  End end_ = End::hand_over;
  StageOptions options_;
  float target_share_ = 1;  // What each target counts in the step.
  std::vector<InFlight> places_;
  SteadyMemory memory_;
  GradientFold fold_;
  std::vector<std::vector<Tensor>> statistics_;
};

}  // namespace troupe::models
