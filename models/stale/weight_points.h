#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "core/memory/steady_memory.h"
#include "core/memory/stream.h"
#include "models/staleness.h"
#include "models/train/optimizer.h"
#include "models/train/stage.h"
#include "models/train/trained.h"

namespace troupe::models {

/// The optimizer steps that a prediction looks ahead.
struct Horizon {
  std::vector<double> rates;  // The learning rate of each step. Empty: no prediction.
};

/// The weights that passes of a stage may see: versions, and predicted or extrapolated points. A
/// point is computed once and lives while later passes may want it or somebody holds it.
class WeightPoints {
 public:
  WeightPoints(const OptimizerConfig& config, const StalenessOptions& staleness, const Stage& stage,
               const StageOptions& options, const std::vector<std::string>& borrowed,
               std::vector<std::string> lent);

  void adopt(Version newest);
  const Version& newest() const { return newest_; }
  std::int64_t version() const { return newest_.weights->version; }

  /// Returns a version that is at most `lag` steps old.
  WeightsPtr at(std::int64_t version) const;
  /// Returns the weights at the end of a horizon. Under aggmsnag the first step includes the
  /// gradient that the stage has summed up so far.
  WeightsPtr ahead(Stream& stream, const Stage& stage, const Horizon& horizon);
  /// Estimates from the drift the weights of `steps` steps ago.
  WeightsPtr behind(Stream& stream, int steps);

 private:
  struct Point {
    WeightsPtr weights;
    std::size_t steps = 0;
    int folded = 0;  // Micro-batches whose gradients the point includes.
  };
  Tensor phi(Stream& stream, const Stage& stage, const Slots& slots) const;
  Tensor expected(Stream& stream, const Stage& stage, std::size_t i, const Horizon& horizon) const;
  std::shared_ptr<Weights> begin_point() const;
  void place(Stream& stream, const Slots& slots, const Tensor& value, Weights& weights) const;
  template <class Body>
  void repeat(Stream& stream, Body body);

  StalenessOptions staleness_;
  std::vector<Parameter> parameters_;
  kernels::Precision precision_;
  bool is_repeated_;
  std::vector<Slots> owned_;              // Without frozen parameters.
  std::vector<OptimizerConfig> configs_;  // Settings of the owned parameters.
  std::vector<std::string> lent_;
  Version newest_;
  std::deque<WeightsPtr> older_;  // In ascending order of version.
  Point ahead_, behind_;
  SteadyMemory ahead_memory_, behind_memory_;
};

}  // namespace troupe::models
