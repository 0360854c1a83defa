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
#include "models/train/parameter_groups.h"
#include "models/train/stage.h"

namespace troupe::models {

/// The configuration's [optimizer] table.
struct OptimizerConfig {
  enum class Kind : std::uint8_t { sgd, adam, adamw, nadamw, muon };
  /// The form of momentum in sgd. PyTorch: v = momentum v + g and w -= lr v. Sutskever et al.: v =
  /// momentum v + lr g and w -= v, so that a change of lr does not rescale the momentum.
  enum class MomentumForm : std::uint8_t { pytorch, sutskever };

  Kind kind = Kind::adamw;
  LearningRate rate;
  double momentum = 0;  // For sgd and muon.
  MomentumForm momentum_form = MomentumForm::pytorch;
  bool nesterov = false;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;
  double clip_norm = 0;  // 0: no clipping.
  double ema = 0;        // A step keeps this share of the average of weights; 0: no average.
  std::vector<ParameterGroup> groups = {};  // The first that matches takes a parameter.

  /// Returns PyTorch's defaults.
  static OptimizerConfig of(Kind kind);

  /// Returns the settings of one parameter, which its group may change. They have no groups.
  OptimizerConfig for_parameter(std::string_view name) const;
  /// Returns whether the weights of any parameter decay.
  bool decays() const;

  /// Returns the factor on the rule's direction in a step: `lr`, or 1 if the direction includes lr.
  double stride(double lr) const {
    return kind == Kind::sgd && momentum_form == MomentumForm::sutskever ? 1 : lr;
  }
};

/// The moments of a stage's parameters, in the order in which their names first occur. Frozen
/// parameters have none.
using Moments = std::vector<std::vector<Tensor>>;

/// The result of an optimizer's step. The weights never change. The next step overwrites the
/// moments, so nobody may read them once that step's gradients have been handed over.
struct Version {
  WeightsPtr weights;
  Moments moments;  // Empty before the first step.
};

/// The contribution of one parameter's gradient, or of a piece of it, to the squared global norm.
struct SquaredNorm {
  std::string name;
  std::vector<double> blocks;    // From kernels::squares_of_blocks.
  std::int64_t first_block = 0;  // The index of blocks[0].
};

/// Returns the norm of all gradients of a model, given the contributions of its stages in order. A
/// name that comes again either continues the same parameter with its next blocks, or is a tied
/// parameter of another stage, which counts once. No cut of the model changes the result.
double global_norm(std::span<const SquaredNorm> squares);

/// The work that a GPU may replay as CUDA graphs. Changes no number.
enum class Graphs : std::uint8_t { none, of_steps };

struct UpdateRule;

/// The first version of the weights, while an optimizer makes it piece by piece. The optimizer
/// draws each parameter, unless the caller supplied its numbers, and then packs it for the layers.
struct FirstVersion {
  /// Nobody else may read it before is_done().
  std::shared_ptr<Weights> weights;
  std::uint64_t seed = 0;
  std::size_t drawn_parameters = 0, packed_parameters = 0;
  std::int64_t drawn_numbers = 0;  // For the parameter that is being drawn.
  std::int64_t done = 0, all = 0;  // Numbers to draw plus numbers to pack.

  bool is_done() const { return done == all; }
};

/// The maker of a stage's next weights, from the last version and the gradients of a step. It owns
/// the moments, and knows neither messages nor threads. The result depends on the weights' version,
/// not on how often step() ran.
///
/// A tied parameter has one gradient: the sum over its uses in the order of the units, after each
/// use was summed up over the step. Stages that borrow it send their uses one by one to the stage
/// that owns it (add_uses), so no cut changes the order. Corrections of late gradients sum up the
/// uses of each stage first.
class Optimizer {
 public:
  /// `parameters` are a stage's slots; slots of one name are one parameter. Borrowed parameters
  /// stay empty in every version. Only their gradients appear.
  Optimizer(const OptimizerConfig& config, std::vector<Parameter> parameters,
            std::vector<Buffer> buffers, kernels::Precision precision, Lateness lateness = {},
            const LossScaling& loss_scaling = {}, Graphs graphs = Graphs::of_steps);

  /// Begins the first version, drawn from the seed and the parameter names. No plan changes it.
  FirstVersion begin(Stream& stream, std::uint64_t seed) const;
  /// Begins a version from tensors (of a checkpoint, a file). It needs every name with its declared
  /// shape and type, and ignores other names. `reached` is the loss scale after the steps done so
  /// far.
  Result<FirstVersion> begin_from(Stream& stream, const std::vector<NamedTensor>& tensors,
                                  std::int64_t version, const LossScale& reached = {}) const;
  /// Draws or packs at least `numbers` numbers, or all that are left. A matrix is packed in one go.
  void go_on(Stream& stream, FirstVersion& first, std::int64_t numbers) const;

  /// Makes a first version in one go.
  WeightsPtr initial(Stream& stream, std::uint64_t seed) const;
  Result<WeightsPtr> from(Stream& stream, const std::vector<NamedTensor>& tensors,
                          std::int64_t version, const LossScale& reached = {}) const;

  /// Returns the gradient of a parameter, summed over its uses in this stage.
  Tensor gradient(Stream& stream, StageGradients& gradients, const std::string& name) const;
  /// Adds the gradient of another stage's use of a parameter.
  void add_use(Stream& stream, StageGradients& gradients, const std::string& name,
               const Tensor& other) const;

  /// Adds the gradients of all uses in another stage. `names` lists a parameter once for each use.
  /// Late gradients get the penalty that this stage's own ones get.
  void add_uses(Stream& stream, StageGradients& gradients, const std::vector<std::string>& names,
                const StageGradients& others) const;

  /// Returns the stage's part of the global norm by parameter, in the order of the slots, before
  /// any penalty. Divides out the loss scale. Every target that counts weighs the same.
  std::vector<SquaredNorm> squared_norms(Stream& stream, StageGradients& gradients,
                                         const LossScale& scale = {});
  /// Like squared_norms(), after all penalties. Empty if no penalty divides the gradients.
  std::vector<SquaredNorm> penalised_squares(Stream& stream, StageGradients& gradients,
                                             const LossScale& scale = {});

  /// Makes the next version. `norm` is the global one. Consumes the gradients. Buffers take the
  /// statistics of the micro-batches in order. If the norm is not finite and the loss scale can
  /// fall, or if no target counts, the step is skipped: the next version has the same weights.
  WeightsPtr step(Stream& stream, const WeightsPtr& weights, StageGradients gradients, double norm);

  /// Makes the next version of a step whose samples are left out: weights, buffers and loss scale
  /// stay as they are.
  WeightsPtr leave_out(Stream& stream, const WeightsPtr& weights);

  /// Returns the moments after the last step, without averages of weights.
  Moments moments() const;

  /// Returns weights and buffers of a version, by unique name in the order of the slots.
  std::vector<NamedTensor> named(const Weights& weights) const;
  /// Returns the moments by name: "h.0.ln_1.weight.m". The next step overwrites them, so write or
  /// copy them first. Empty before the first step.
  std::vector<NamedTensor> state() const;
  /// Copies the moments after `steps_done` steps. If that is not 0, every name must be there.
  /// Ignores other names.
  Status restore(Stream& stream, const std::vector<NamedTensor>& state, std::int64_t steps_done);

 private:
  /// A parameter, listed once even if it has several slots. Frozen ones are listed as well.
  struct Trained {
    std::vector<std::size_t> slots;
    OptimizerConfig config;            // With the settings of its group.
    const UpdateRule* rule = nullptr;  // Null if the parameter is frozen.
    std::vector<std::string_view> moment_names;
    std::vector<Tensor> moments;
  };
  const Parameter& declared(const Trained& trained) const { return parameters_[trained.slots[0]]; }
  std::vector<std::size_t> slots_of(const std::string& name) const;
  std::string moment_name(const Trained& trained, std::size_t moment) const;
  Tensor* moment(Trained& trained, std::string_view name) const;
  void make_moments(Stream& stream, const Weights& weights);
  void add_to(Stream& stream, StageGradients& gradients, std::size_t at, const Tensor& other) const;
  Tensor penalised(Stream& stream, const StageGradients& gradients, std::size_t slot,
                   const Tensor& first, const Tensor& later) const;
  void add_own_uses(Stream& stream, StageGradients& gradients, std::span<const std::size_t> slots,
                    int set = 0) const;
  Tensor take(StageGradients& gradients, const Trained& trained, int set) const;
  int missed_steps(std::int64_t step) const;
  /// The kinds of repeated work.
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
  std::vector<Trained> trained_;  // In the order of their first slots.
  // The order in which parameters are stepped: the memory that one frees suffices for the next.
  std::vector<std::size_t> largest_first_;
  SteadyMemory memory_;  // Also holds versions, so that passes read weights at stable addresses.
};

}  // namespace troupe::models
