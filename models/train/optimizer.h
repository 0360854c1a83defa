#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/memory/steady_memory.h"
#include "core/memory/stream.h"
#include "core/result.h"
#include "models/learning_rate.h"
#include "models/parameter.h"
#include "models/staleness.h"
#include "models/train/stage.h"

namespace troupe::models {

/// What `optimizer` says in the configuration.
struct OptimizerConfig {
  enum class Kind : std::uint8_t { sgd, adam, adamw, nadamw, muon };
  /// Of sgd: v = momentum v + g and w -= lr v, as PyTorch has it; or v = momentum v + lr g and
  /// w -= v, as Sutskever et al. have it, so that a change of lr leaves the momentum as it is.
  enum class MomentumForm : std::uint8_t { pytorch, sutskever };

  Kind kind = Kind::adamw;
  LearningRate rate;
  double momentum = 0;  // sgd, muon
  MomentumForm momentum_form = MomentumForm::pytorch;
  bool nesterov = false;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;
  double clip_norm = 0;  // 0: no clipping.

  /// With PyTorch's defaults.
  static OptimizerConfig of(Kind kind);

  /// What a step multiplies the rule's direction by: `lr`, unless that is in the direction already.
  double stride(double lr) const {
    return kind == Kind::sgd && momentum_form == MomentumForm::sutskever ? 1 : lr;
  }
};

/// The moments of a stage's parameters, in the order in which the optimizer first meets their
/// names.
using Moments = std::vector<std::vector<Tensor>>;

/// What an optimizer publishes. The weights never change; the moments do with the next step, so
/// that nobody may look at them once that step's gradients were given away.
struct Version {
  WeightsPtr weights;
  Moments moments;  // None before the first step.
};

/// What a parameter's gradient, or a piece of it, adds to the square of the global norm.
struct SquaredNorm {
  std::string name;
  std::vector<double> blocks;    // As kernels::squares_of_blocks has them,
  std::int64_t first_block = 0;  // from this one on.
};

/// The norm of all gradients of a model, given those of its stages one after another. A name that
/// comes again goes on with the next blocks of the same parameter, or else is a parameter that
/// stages share: it counts once. No cut changes the result.
double global_norm(std::span<const SquaredNorm> squares);

/// Which of an optimizer's work a GPU may play as graphs. Changes no number.
enum class Graphs : std::uint8_t { none, of_steps };

struct UpdateRule;

/// An optimizer's first version of the weights while it is being made, piece by piece. The
/// optimizer draws the numbers of each parameter or has been given them, then packs them for the
/// layers.
struct FirstVersion {
  std::shared_ptr<Weights> weights;  // Nobody else may look at it before all is done.
  std::uint64_t seed = 0;
  std::size_t drawn_parameters = 0, packed_parameters = 0;
  std::int64_t drawn_numbers = 0;  // Of the parameter that is being drawn.
  std::int64_t done = 0, all = 0;  // Numbers to draw and numbers to pack.

  bool is_done() const { return done == all; }
};

/// Makes the next version of a stage's weights out of the last one and the gradients of a step.
/// Owns the moments; no message, no thread. What it makes is a function of the weights' version,
/// not of how often it was called.
///
/// A tied parameter has one gradient: (first use) + (later use), each finished first. Where its
/// uses are in two stages, each gives its own to the other (gradient, add_use) and both make the
/// same next version.
class Optimizer {
 public:
  /// `parameters` are a stage's slots; slots of the same name are one parameter. Those that are
  /// borrowed stay empty in every version, and nothing is said of them but their gradient.
  Optimizer(const OptimizerConfig& config, std::vector<Parameter> parameters,
            std::vector<Buffer> buffers, kernels::Precision precision, Lateness lateness = {},
            const LossScaling& loss_scaling = {}, Graphs graphs = Graphs::of_steps);

  /// Begins the first version: drawn by (seed, the parameter's name), so that no plan changes it.
  FirstVersion begin(Stream& stream, std::uint64_t seed) const;
  /// Begins a version from given tensors (a checkpoint, a file). All names must be there, of the
  /// right shapes, in fp32; others may be there too. `reached` is what the loss scale came to, if
  /// steps were done.
  Result<FirstVersion> begin_from(Stream& stream, const std::vector<NamedTensor>& tensors,
                                  std::int64_t version, const LossScale& reached = {}) const;
  /// Draws or packs at least so many numbers, or all that are left. A matrix is packed in one go.
  void go_on(Stream& stream, FirstVersion& first, std::int64_t numbers) const;

  /// Makes such versions in one go.
  WeightsPtr initial(Stream& stream, std::uint64_t seed) const;
  Result<WeightsPtr> from(Stream& stream, const std::vector<NamedTensor>& tensors,
                          std::int64_t version, const LossScale& reached = {}) const;

  /// The gradient of a parameter, its uses in this stage added up.
  Tensor gradient(Stream& stream, StageGradients& gradients, const std::string& name) const;
  /// Adds what another stage's use of a parameter gave.
  void add_use(Stream& stream, StageGradients& gradients, const std::string& name,
               const Tensor& other) const;

  /// Adds what all uses of another stage gave: of each of these names once for each use. What came
  /// late there is penalised as it is here.
  void add_uses(Stream& stream, StageGradients& gradients, const std::vector<std::string>& names,
                const StageGradients& others) const;

  /// The stage's part of the global norm, without the loss scale: by parameter, in the order of the
  /// slots; before any penalty.
  std::vector<SquaredNorm> squared_norms(Stream& stream, StageGradients& gradients,
                                         const LossScale& scale = {});
  /// The same of the gradients after all penalties; empty if no penalty divides them.
  std::vector<SquaredNorm> penalised_squares(Stream& stream, StageGradients& gradients,
                                             const LossScale& scale = {});

  /// `norm` is the global one. Gradients are used up. Buffers take the micro-batches' statistics in
  /// order. Where the norm is not finite and the loss scale can be lowered, the step is skipped:
  /// the next version has the same weights.
  WeightsPtr step(Stream& stream, const WeightsPtr& weights, StageGradients gradients, double norm);

  /// As they are after the last step.
  Moments moments() const;

  /// Weights and buffers of a version, by unique name in the order of the slots.
  std::vector<NamedTensor> named(const Weights& weights) const;
  /// The moments by name: "h.0.ln_1.weight.m". They change with the next step: write or copy them
  /// before. Before the first step there are none.
  std::vector<NamedTensor> state() const;
  /// Takes a copy of the moments that so many steps made. All names must be there, unless no step
  /// was done; others may be there too.
  Status restore(Stream& stream, const std::vector<NamedTensor>& state, std::int64_t steps_done);

 private:
  /// A parameter, once, however many slots it has.
  struct Trained {
    std::vector<std::size_t> slots;
    const UpdateRule* rule = nullptr;
    std::vector<std::string_view> moment_names;
    std::vector<Tensor> moments;
  };
  const Parameter& declared(const Trained& trained) const { return parameters_[trained.slots[0]]; }
  std::vector<std::size_t> slots_of(const std::string& name) const;
  std::string moment_name(const Trained& trained, std::size_t moment) const;
  Tensor* moment(Trained& trained, std::string_view name) const;
  void make_moments(Stream& stream);
  void add_to(Stream& stream, StageGradients& gradients, std::size_t at, const Tensor& other) const;
  Tensor penalised(Stream& stream, const StageGradients& gradients, std::size_t slot,
                   const Tensor& first, const Tensor& later) const;
  void add_own_uses(Stream& stream, StageGradients& gradients, std::span<const std::size_t> slots,
                    int set = 0) const;
  Tensor take(StageGradients& gradients, const Trained& trained, int set) const;
  int missed_steps(std::int64_t step) const;
  /// Work that comes again.
  enum Repeated : SteadyMemory::Work { norms, steps, statistics, penalised_norms };
  std::vector<SquaredNorm> squares_of(Stream& stream, StageGradients& gradients, int set,
                                      const LossScale& scale, Repeated work);
  template <class Body>
  void repeat(Stream& stream, Repeated work, Body body);
  void update(Stream& stream, const Weights& weights, StageGradients& gradients, double clip,
              Weights& next);
  void watch(Stream& stream, Trained& trained, std::int64_t step, double lr, const Tensor& weight,
             const Tensor& next);
  void place(const Trained& trained, const Tensor& value, Weights& weights) const;
  void make_forms(Stream& stream, Weights& weights) const;
  void make_forms(Stream& stream, const Trained& trained, Weights& weights) const;
  std::int64_t numbers_to_pack(const Trained& trained) const;
  Tensor next_buffer(Stream& stream, std::size_t buffer, const Tensor& last,
                     const StageGradients& gradients) const;

  OptimizerConfig config_;
  std::vector<Parameter> parameters_;
  std::vector<Buffer> buffers_;
  kernels::Precision precision_;
  Lateness lateness_;
  LossScaling loss_scaling_;
  Graphs graphs_;
  std::vector<Trained> trained_;  // In the order of the first slot.
  // In which they are stepped: what one gives back has room for all that smaller ones take.
  std::vector<std::size_t> largest_first_;
  SteadyMemory memory_;  // Of versions, too: what passes read is at known addresses.
};

}  // namespace troupe::models
