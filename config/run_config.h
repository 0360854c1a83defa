#pragma once

#include <cstdint>
#include <string>

#include "config/fields.h"
#include "config/section/data.h"
#include "config/section/limits.h"
#include "config/section/pipeline.h"
#include "config/section/precision.h"
#include "config/section/running.h"
#include "core/value.h"
#include "models/staleness.h"
#include "models/train/optimizer.h"

namespace troupe::config {

/// A run as a checked struct: every number is within its bounds and the keys agree with one
/// another. Where a member is optional, nothing means "auto" unless its comment says otherwise.
/// Each struct declares its keys in fields(): their types, bounds and help.
struct RunConfig {
  struct Model {
    std::string kind;
    Value options;     // The complete table that the kind's `build` takes. `vocab` may be "auto".
    std::string init;  // "random", or a .safetensors file.

    bool vocabulary_from_data() const;
    /// With "auto" replaced.
    Value options_for(std::int64_t vocabulary) const;
  };

  using Data = section::Data;
  using Batch = section::Batch;
  using Stages = section::Stages;
  using Pipeline = section::Pipeline;
  using Staleness = models::StalenessOptions;
  using Parallel = section::Parallel;
  using Precision = section::Precision;
  using Elastic = section::Elastic;
  using Checkpoint = section::Checkpoint;
  using Train = section::Train;
  using Limits = section::Limits;
  using Log = section::Log;
  enum class Exactness { bits, samples };

  std::string name;
  std::uint64_t seed = 1;
  Exactness exactness = Exactness::bits;
  Model model;
  Data data;
  Batch batch;
  models::OptimizerConfig optimizer;
  Pipeline pipeline;
  Staleness staleness;
  Parallel parallel;
  Precision precision;
  Elastic elastic;
  Checkpoint checkpoint;
  Train train;
  Limits limits;
  Log log;

  /// The keys above all tables.
  static Fields<RunConfig> fields() {
    using enum Half;
    return {
        field(&RunConfig::name,
              {.name = "name",
               .type = Type::text,
               .help = "What the run is called, on the head and in paths; else its file's name."}),
        field(&RunConfig::seed, {.name = "seed",
                                 .fallback = 1,
                                 .most = 9e15,
                                 .half = recipe,
                                 .help = "What all random numbers are drawn from: first weights, "
                                         "order of samples, dropout."}),
        field(&RunConfig::exactness,
              {.name = "exactness",
               .type = Type::choice,
               .fallback = "bits",
               .choices = {"bits", "samples"},
               .half = recipe,
               .help = "What no change of plan may change: every bit, or only which samples make a "
                       "step. With samples NCCL adds up what replicas give, in an order of its "
                       "own, where it links all that hold a stage."}),
    };
  }
};

/// From a tree that was validated and is complete; `name` has been filled in.
RunConfig read_run_config(const Value& complete);

/// Micro-batches in one step of all replicas together, once it is known how large they are.
std::int64_t micro_batches(const RunConfig& config, std::int64_t micro);

/// Reduction groups of a step of so many micro-batches: `parallel.groups`, or else the largest
/// divisor that is at most 8.
int reduction_groups(const RunConfig& config, std::int64_t micro_batches);

}  // namespace troupe::config
