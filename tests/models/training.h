#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/digest.h"
#include "core/memory/stream.h"
#include "core/value.h"
#include "models/cuts.h"
#include "models/model.h"
#include "models/train/optimizer.h"
#include "models/train/shared_parameters.h"
#include "models/train/stage.h"

namespace troupe::models {

/// Builds a model of that kind; missing keys take their defaults.
Model build(std::string_view kind, const Value& options, Cuts cuts = Cuts::layers);

/// Builds a model of a description in TOML; missing options take their defaults.
Model described(const std::string& text, const Value& options = Value::Map{},
                Cuts cuts = Cuts::layers);

/// Returns small models of the kinds, two with values that skip units, and one with several inputs.
/// The first five have one kind each: mlp, gpt2, llama, vit and resnet.
std::vector<Model> small_models(Cuts cuts = Cuts::layers);
/// Returns the same models without dropout.
std::vector<Model> small_models_without_dropout();

/// The samples of a step.
struct Batch {
  Tensor input;
  Tensor target;
  std::vector<Tensor> more = {};  // Inputs behind the first one.

  /// Returns all inputs of some samples.
  Bundle inputs(std::int64_t first, std::int64_t count) const;
  Bundle inputs() const { return inputs(0, input.shape()[0]); }
};

/// Returns random samples that fit the model. Some targets in f32 are NaN: they do not count.
Batch made_batch(Stream& stream, const Model& model, std::int64_t samples, std::uint64_t seed);

/// The execution options of a training run; none may change a bit.
struct Way {
  enum class Backward { whole, in_halves };

  std::vector<int> cuts;  // First units of all stages but the first.
  Backward backward = Backward::whole;
  Keep keep = Keep::everything;
  std::int64_t short_rows = StageOptions().short_rows;
  int threads = 1;
  Device* device = nullptr;  // Null: the CPU computes.
  std::unique_ptr<MemorySource> (*memory)() = host_memory;
};

struct StepResult {
  double loss = 0;  // Mean over the step's targets that count; 0 if none does.
  double norm = 0;  // Not finite if the step was skipped.
};

/// Runs all stages in this thread: all forward passes of a step, then all backward passes.
class Pipeline {
 public:
  struct Recipe {
    const Model& model;
    OptimizerConfig optimizer;
    int micro_batches = 4;
    int groups = 1;
    kernels::Precision precision = kernels::Precision::fp32;
    LossScaling loss_scaling = {};
  };
  Pipeline(const Recipe& recipe, const Way& way);

  Stream& stream() { return stream_; }
  MemoryPool& memory() { return memory_; }
  const Stage& stage(int index) const { return stages_[static_cast<std::size_t>(index)]; }

  void start(std::uint64_t seed);
  void start_from(const std::vector<NamedTensor>& tensors);
  StepResult step(const Batch& batch);
  /// Returns the loss scale of the next step.
  const LossScale& loss_scale() const { return weights_[0]->loss_scale; }

  /// Returns parameters and buffers in model order; tied ones once.
  std::vector<NamedTensor> weights() const;
  /// Returns the digest of weights and moments.
  Digest digest();

 private:
  double run_passes(const Batch& batch);
  void backward(int m);
  std::vector<StageGradients> gather();

  MemoryPool memory_;
  Stream stream_;
  Recipe recipe_;
  Way way_;
  std::vector<Stage> stages_;
  std::vector<Optimizer> optimizers_;
  std::vector<SharedParameter> shared_;
  std::vector<WeightsPtr> weights_;
};

}  // namespace troupe::models
