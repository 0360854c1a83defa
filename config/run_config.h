#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/units.h"
#include "core/value.h"
#include "models/staleness.h"
#include "models/train/optimizer.h"
#include "schedules/exchange.h"
#include "schedules/recompute.h"

namespace troupe::config {

/// A run as a checked struct: every number is within its bounds and the keys agree with one
/// another. Where a member is optional, nothing means "auto" unless its comment says otherwise.
/// What each key means is in the schema.
struct RunConfig {
  struct Model {
    std::string kind;
    Value options;     // The complete table that the kind's `build` takes. `vocab` may be "auto".
    std::string init;  // "random", or a .safetensors file.

    bool vocabulary_from_data() const;
    /// With "auto" replaced.
    Value options_for(std::int64_t vocabulary) const;
  };

  struct Data {
    enum class Order { shuffled, sequential };
    std::string train;
    std::optional<std::string> validate;  // Nothing: there is no evaluation.
    Order order = Order::shuffled;
  };

  struct Batch {
    std::int64_t global = 1;
    std::optional<std::int64_t> micro;
  };

  struct Stages {
    std::optional<int> count;
    std::vector<int> boundaries;  // Empty, or count + 1 of them: 0, ..., the number of units.
  };

  struct Pipeline {
    std::string schedule;  // A name, a file or "auto".
    Stages stages;
    int chunks = 1;
    std::optional<int> replicas;  // Nothing: as go best with the devices that are there.
    int tensor = 1;
    schedules::Recompute recompute;
    std::optional<std::int64_t> memory;  // Bytes that a device may use.
  };

  using Staleness = models::StalenessOptions;

  struct Parallel {
    using Exchange = schedules::Exchange;
    std::optional<int> groups;
    Exchange exchange = Exchange::all_to_all;
    std::optional<bool> shard_optimizer;  // What `exchange` must come to, where somebody says so.
  };

  struct Precision {
    enum class Compute {
      fp32,
      tf32,
      fp16,
      fp16_chain,
      fp16_gpu,
      bf16,
      bf16_pairs,
      bf16_blocks,
      bf16_gpu
    };
    std::optional<Compute> compute;
    int loss_scale_power = 16;  // The first scale is 2 to this power.
    std::int64_t growth_interval = 2000;
  };

  enum class Exactness { bits, samples };

  struct Elastic {
    enum class OnPreempt { handover, checkpoint, drop };
    CountRange nodes;
    OnPreempt on_preempt = OnPreempt::handover;
    int copies = 2;
  };

  struct Checkpoint {
    std::string directory;  // With the run's name in it.
    Interval every;
    int keep = 3;
  };

  struct Train {
    std::int64_t steps = 0;
    std::optional<std::int64_t> eval_every;  // Nothing: no evaluation on the way.
    std::int64_t eval_batches = 1;
    std::optional<std::string> export_path;  // Nothing: nothing is written.
    std::optional<int> threads;
    enum class Device { cpu, cuda };
    Device device = Device::cpu;
    std::int64_t graph_rows = 0;
  };

  /// Every wait.
  struct Limits {
    std::chrono::nanoseconds silence_floor{};
    std::chrono::nanoseconds reconnect_patience{};
    std::chrono::nanoseconds stuck_floor{};
    std::chrono::nanoseconds start_patience{};
    std::chrono::nanoseconds gather_patience{};
    std::chrono::nanoseconds prepare_patience{};
    std::chrono::nanoseconds load_patience{};
    std::chrono::nanoseconds head_patience{};
    std::chrono::nanoseconds suspend_patience{};
    std::chrono::nanoseconds save_patience{};
    int futile_epochs = 5;
    int strikes = 3;
    std::chrono::nanoseconds strike_window{};
  };

  struct Log {
    std::int64_t every = 10;  // Steps.
    bool staleness = true;
  };

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
};

/// From a tree that was validated and is complete; `name` has been filled in.
RunConfig read_run_config(const Value& complete);

/// Micro-batches in one step of all replicas together, once it is known how large they are.
std::int64_t micro_batches(const RunConfig& config, std::int64_t micro);

/// Reduction groups of a step of so many micro-batches: `parallel.groups`, or else the largest
/// divisor that is at most 8.
int reduction_groups(const RunConfig& config, std::int64_t micro_batches);

}  // namespace troupe::config
