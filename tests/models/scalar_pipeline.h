#pragma once

#include <cstddef>
#include <deque>
#include <set>
#include <string>
#include <vector>

#include "core/memory/stream.h"
#include "models/model.h"
#include "models/stale/training_stage.h"
#include "models/train/optimizer.h"

namespace troupe::models {

/// Stages of scalar weights in double: h = w z, z' = h + c/2 h^2 for each weight in turn. The loss
/// is (y - t)^2 / 2, weighted by 1 / step_every.
struct ScalarRun {
  enum class Order { one_f_one_b, flush };  // flush: all passes of a step, then all gradients.
  enum class End { loss, outside };         // outside: the test supplies the gradients.

  std::vector<std::vector<double>> weights = {{1}};
  double c = 0;
  std::vector<int> depths = {0};  // For each stage, how far it runs ahead.
  std::vector<double> x = std::vector<double>(16, 1.0), t = std::vector<double>(16, 0.0);
  std::set<std::string> frozen;  // Names of weights: "s1.0".
  bool tied = false;             // The last stage's first weight is the first stage's first weight.
  int micro_batches = 8;
  int step_every = 1;
  OptimizerConfig optimizer;
  StalenessOptions staleness;
  Keep keep = Keep::input;
  Order order = Order::one_f_one_b;
  End end = End::loss;
  bool is_measured = true;  // Whether penalties are measured.
};

/// The results by stage, then by version or micro-batch.
struct ScalarTrace {
  std::vector<std::vector<std::vector<double>>> theta;
  std::vector<std::vector<std::vector<double>>> forward;  // The weights that forward passes saw.
  std::vector<std::vector<int>> delays;
  std::vector<std::vector<double>> penalty_mean, penalty_most;
  std::vector<double> loss;                               // Indexed by micro-batch.
  std::vector<std::vector<double>> norm, penalised_norm;  // Indexed by stage, then by step.
};

/// Real stages and optimizers, driven in the order of their lanes.
class ScalarPipeline {
 public:
  explicit ScalarPipeline(const ScalarRun& run);
  ~ScalarPipeline();

  /// Plays all micro-batches, from the first to the drain.
  void round();
  /// Sets the order in which stages take turns; it must not change any number.
  void take_turns(std::vector<std::size_t> order) { turns_ = std::move(order); }

  const ScalarTrace& trace() const { return trace_; }
  MemoryPool& memory() { return memory_; }
  Stream& stream() { return stream_; }
  const TrainingStage& stage(std::size_t s) const { return stages_[s].training; }
  const Optimizer& optimizer(std::size_t s) const { return stages_[s].optimizer; }
  double theta(std::size_t s, std::size_t weight = 0) const;

  /// Lets metrics accumulate until take_metrics(); penalties are not traced then.
  void keep_metrics() { keeps_metrics_ = true; }
  StalenessMetrics take_metrics(std::size_t s) { return stages_[s].training.take_metrics(); }

  /// Returns the most bytes held after a step.
  std::size_t most_held_after_a_step() const { return most_held_; }
  /// Returns the number of weights in older versions that are still needed.
  std::size_t held_back(std::size_t s) const {
    return static_cast<std::size_t>(run_.staleness.lag) * run_.weights[s].size();
  }

  /// Save a stage as a checkpoint does, and restore it.
  std::vector<NamedTensor> saved(std::size_t s) const;
  void restore(std::size_t s, const std::vector<NamedTensor>& tensors, std::int64_t steps);

 private:
  struct Step {
    enum class Kind { forward, backward } kind;
    int m;
  };
  struct Place {
    TrainingStage training;
    Optimizer optimizer;
    WeightsPtr weights;
    std::vector<Step> lane;
    std::size_t next = 0;
    std::vector<Tensor> inputs, gradients;
    std::vector<double> gap_factors;  // Indexed by micro-batch; reported by the next stage.
    std::vector<Loan> loans;
  };
  bool borrows(std::size_t s) const { return run_.tied && s > 0 && s + 1 == run_.weights.size(); }
  std::vector<std::string> names(std::size_t s) const;
  std::vector<Step> lane(int depth) const;
  std::vector<int> delays(const std::vector<Step>& lane) const;
  bool advance(std::size_t s);
  void forward(std::size_t s, int m);
  void backward(std::size_t s, int m);
  void step(std::size_t s);
  void note_theta(std::size_t s);
  Tensor scalar(double value);

  ScalarRun run_;
  MemoryPool memory_;
  Stream stream_{memory_};
  std::vector<double> seen_;
  Model model_;
  std::vector<Place> stages_;
  std::vector<std::size_t> turns_;
  std::deque<StageGradients> given_back_;  // Gradients of the borrowed weight, step by step.
  ScalarTrace trace_;
  std::size_t most_held_ = 0;
  bool keeps_metrics_ = false;
};

ScalarTrace run(const ScalarRun& run);

}  // namespace troupe::models
