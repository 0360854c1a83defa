#pragma once

#include <cstdint>
#include <string>

#include "config/schema/fields.h"
#include "config/section/data.h"
#include "config/section/limits.h"
#include "config/section/pipeline.h"
#include "config/section/precision.h"
#include "config/section/running.h"
#include "core/value.h"
#include "models/staleness.h"
#include "models/train/optimizer.h"

namespace troupe::config {

/// A checked configuration: every number is within its bounds, and the keys agree with one another.
/// An empty optional means "auto", unless its comment says otherwise. The schema explains each key.
struct RunConfig {
  struct Model {
    std::string kind;
    Value description;  // The tree, for a model of one's own; otherwise null.
    Value options;      // The complete table for the kind's `build`. `vocab` may be "auto".
    std::string init;   // "random", or a .safetensors file.

    bool vocabulary_from_data() const;
    /// Returns the target that does not count, unless a formula of the description gives it.
    std::optional<std::int32_t> ignored_target() const;
    /// Returns whether targets may not count.
    bool may_ignore() const;
    /// Returns the options with "auto" replaced by a number.
    Value options_for(std::int64_t vocabulary) const;
    /// Returns these options with `kind` and, for a model of one's own, `description`, as
    /// checkpoints hold them: without later options that have their fallback.
    Value table_for(std::int64_t vocabulary) const;
    /// Returns the same with options as they are.
    Value table() const;
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
  using Sample = section::Sample;
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
  Sample sample;
  Log log;

  /// Returns the keys outside of all tables.
  static Fields<RunConfig> fields() {
    using enum Half;
    return {
        field(&RunConfig::name,
              {.name = "name",
               .type = Type::text,
               .help = "The run's name, used by the head and in paths. Default: the name of the "
                       "configuration file."}),
        field(&RunConfig::seed,
              {.name = "seed",
               .fallback = 1,
               .most = 9e15,
               .half = recipe,
               .help = "Random seed for initial weights, sample order and dropout."}),
        field(&RunConfig::exactness, {.name = "exactness",
                                      .type = Type::choice,
                                      .fallback = "bits",
                                      .choices = {"bits", "samples"},
                                      .half = recipe,
                                      .help = "What stays identical when the plan changes: every "
                                              "bit (bits), or only the samples "
                                              "of each step (samples). With samples, NCCL "
                                              "all-reduces gradients in its own order "
                                              "if it links all replicas of a stage."}),
    };
  }
};

/// Reads a tree that is validated and complete, and has a `name`.
RunConfig read_run_config(const Value& complete);

/// Returns the micro-batches of all replicas in one step, for micro-batches of `micro` samples.
std::int64_t micro_batches(const RunConfig& config, std::int64_t micro);

/// Returns the number of reduction groups of a step: `parallel.groups`, or else the largest divisor
/// of `micro_batches` that is at most 8.
int reduction_groups(const RunConfig& config, std::int64_t micro_batches);

}  // namespace troupe::config
