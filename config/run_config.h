#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/units.h"
#include "core/value.h"
#include "models/staleness.h"
#include "models/train/optimizer.h"
#include "schedules/exchange.h"
#include "schedules/recompute.h"

namespace troupe::config {

/// A checked configuration: every number is within its bounds, and the keys agree with one another.
/// An empty optional means "auto", unless its comment says otherwise. The schema explains each key.
struct RunConfig {
  struct Model {
    std::string kind;
    Value options;     // The complete table that the kind's `build` takes. `vocab` may be "auto".
    std::string init;  // "random", or a .safetensors file.

    bool vocabulary_from_data() const;
    /// Returns the options with "auto" replaced by a number.
    Value options_for(std::int64_t vocabulary) const;
  };

  struct Data {
    enum class Order { shuffled, sequential };
    std::string train;
    std::optional<std::string> validate;  // Empty: there is no evaluation.
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
    std::optional<int> replicas;  // Empty: the best number for the devices that are there.
    int tensor = 1;
    schedules::Recompute recompute;
    std::optional<std::int64_t> memory;  // The bytes that a device may use.
  };

  using Staleness = models::StalenessOptions;

  struct Parallel {
    using Exchange = schedules::Exchange;
    std::optional<int> groups;
    Exchange exchange = Exchange::all_to_all;
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
    CountRange nodes;
    int copies = 2;
  };

  struct Checkpoint {
    std::string directory;  // With the run's name in it.
    Interval every;
    int keep = 3;
  };

  struct Train {
    std::int64_t steps = 0;
    std::optional<std::int64_t> eval_every;  // Empty: no evaluation before the end.
    std::int64_t eval_batches = 1;
    std::optional<std::string> export_path;  // Empty: no file is written.
    std::optional<int> threads;
    enum class Device { cpu, cuda };
    Device device = Device::cpu;
    std::int64_t graph_rows = 0;
  };

  /// All waits.
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

/// Reads a tree that is validated and complete, and has a `name`.
RunConfig read_run_config(const Value& complete);

/// Returns the micro-batches of all replicas in one step, for micro-batches of `micro` samples.
std::int64_t micro_batches(const RunConfig& config, std::int64_t micro);

/// Returns the number of reduction groups of a step: `parallel.groups`, or else the largest divisor
/// of `micro_batches` that is at most 8.
int reduction_groups(const RunConfig& config, std::int64_t micro_batches);

}  // namespace troupe::config
