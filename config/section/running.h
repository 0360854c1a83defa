#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/schema/fields.h"

namespace troupe::config::section {

constexpr double most_steps = 1e12;

/// The reaction of a run to nodes that join and leave.
struct Elastic {
  CountRange nodes;
  int copies = 2;
  enum class Replan { measured, nodes };
  Replan replan = Replan::measured;

  static Fields<Elastic> fields() {
    using enum Half;
    constexpr auto live = Change::live;
    constexpr double most_nodes = 4096;
    return {
        field(&Elastic::nodes, {.name = "elastic.nodes",
                                .type = Type::range,
                                .fallback = "1:4096",
                                .least = 1,
                                .most = most_nodes,
                                .change = live,
                                .help = "Fewest and most nodes of the run: \"1:8\". With fewer "
                                        "nodes it waits; it never uses more."}),
        field(&Elastic::copies,
              {.name = "elastic.copies",
               .fallback = 2,
               .least = 1,
               .most = 8,
               .change = live,
               .help = "In-memory copies of each shard on different hosts, the owner's included. "
                       "With 1 only checkpoints protect a shard."}),
        field(&Elastic::replan,
              {.name = "elastic.replan",
               .type = Type::choice,
               .fallback = "measured",
               .choices = {"measured", "nodes"},
               .help = "When a run with an open plan is planned again: \"nodes\": if nodes come or "
                       "go. \"measured\": also if steps or links are other than expected."}),
    };
  }
};

/// The folder of checkpoints, and how often one is saved.
struct Checkpoint {
  std::string directory;  // Contains the run's name.
  Interval every;
  int keep = 3;
  int keep_best = 0;

  static Fields<Checkpoint> fields() {
    using enum Half;
    constexpr auto live = Change::live;
    return {
        field(&Checkpoint::directory, {.name = "checkpoint.dir",
                                       .type = Type::text,
                                       .fallback = "runs/{name}/checkpoints",
                                       .help = "Checkpoint folder; {name} is the run's name."}),
        field(&Checkpoint::every, {.name = "checkpoint.every",
                                   .type = Type::interval,
                                   .fallback = "5m",
                                   .change = live,
                                   .help = "Checkpoint interval: \"100 steps\", or a duration."}),
        field(&Checkpoint::keep, {.name = "checkpoint.keep",
                                  .fallback = 3,
                                  .least = 1,
                                  .most = 1e6,
                                  .help = "Number of newest checkpoints to keep."}),
        field(&Checkpoint::keep_best,
              {.name = "checkpoint.keep_best",
               .fallback = 0,
               .least = 0,
               .most = 1e6,
               .help = "Number of checkpoints with the lowest validation losses to keep besides "
                       "those. A state with such a loss is saved at once. RUN@best names the best "
                       "one."}),
    };
  }
};

/// The length of training, evaluation, export and compute devices.
struct Train {
  std::int64_t steps = 0;
  std::optional<std::int64_t> eval_every;  // Empty: no evaluation before the end.
  std::int64_t eval_batches = 1;
  std::optional<std::int64_t> stop_after;  // Empty: the run never ends early.
  double min_improvement = 0;
  enum class OnSpike { none, stop, skip };
  OnSpike on_spike = OnSpike::none;
  double spike_factor = 2;
  std::int64_t spike_window = 50;
  std::int64_t spike_most = 3;
  std::optional<double> spike_norm_factor;  // Empty: gradient norms may be anything.
  std::vector<std::int64_t> skip_steps;     // In order, counted from 1.
  std::optional<std::string> export_path;   // Empty: no file is written.
  std::optional<int> threads;
  enum class Device { cpu, cuda };
  Device device = Device::cpu;
  std::int64_t graph_rows = 0;

  static Fields<Train> fields() {
    using enum Half;
    constexpr auto live = Change::live;
    return {
        field(&Train::steps, {.name = "train.steps",
                              .presence = Key::Presence::required,
                              .least = 1,
                              .most = most_steps,
                              .change = live,
                              .help = "Optimizer steps to train."}),
        field(&Train::eval_every, {.name = "train.eval_every",
                                   .least = 1,
                                   .most = most_steps,
                                   .change = live,
                                   .help = "Steps between two evaluations on data.validate. "
                                           "Default: one evaluation at the end."}),
        field(&Train::eval_batches,
              {.name = "train.eval_batches",
               .fallback = 8,
               .least = 1,
               .change = live,
               .help = "Batches per evaluation; every evaluation uses the same ones."}),
        field(&Train::stop_after,
              {.name = "train.stop_after",
               .least = 1,
               .most = 1e6,
               .help = "Early stopping: the run is done after this many evaluations in a row "
                       "without an improvement of the validation loss. Default: only after "
                       "train.steps."}),
        field(&Train::min_improvement,
              {.name = "train.min_improvement",
               .type = Type::number,
               .fallback = 0.0,
               .least = 0,
               .help = "Smallest decrease of the lowest validation loss that counts for "
                       "train.stop_after."}),
        field(&Train::on_spike,
              {.name = "train.on_spike",
               .type = Type::choice,
               .fallback = "none",
               .choices = {"none", "stop", "skip"},
               .help = "What a loss spike does: \"stop\" ends the run before the step counts; "
                       "\"skip\" goes back and leaves out the step's samples. \"none\": only a "
                       "number that is not finite ends the run."}),
        field(&Train::spike_factor,
              {.name = "train.spike_factor",
               .type = Type::number,
               .fallback = 2.0,
               .least = 1,
               .help = "A loss above this many times the median of the last train.spike_window "
                       "steps is a spike, and so is one that is not finite.",
               .when = {"train.on_spike", {"stop", "skip"}}}),
        field(&Train::spike_norm_factor,
              {.name = "train.spike_norm_factor",
               .type = Type::number,
               .least = 1,
               .help = "A gradient norm above this many times the median of the last "
                       "train.spike_window steps is a spike, too. Default: only losses are "
                       "compared.",
               .when = {"train.on_spike", {"stop", "skip"}}}),
        field(&Train::spike_window,
              {.name = "train.spike_window",
               .fallback = 50,
               .least = 1,
               .most = 1e5,
               .help = "Steps whose median loss a spike is compared with. Before so many steps are "
                       "done, only a loss that is not finite is a spike.",
               .when = {"train.on_spike", {"stop", "skip"}}}),
        field(&Train::spike_most,
              {.name = "train.spike_most",
               .fallback = 3,
               .least = 1,
               .most = 1e5,
               .help = "Steps that may be left out in train.spike_window steps; one more spike "
                       "ends the run.",
               .when = {"train.on_spike", {"skip"}}}),
        {{.name = "train.skip_steps",
          .type = Type::integers,
          .least = 1,
          .most = most_steps,
          .half = recipe,
          .help = "Steps whose samples are left out, counted from 1 and in order: [120, 345]. They "
                  "change no weights. train.on_spike = \"skip\" adds to this list."},
         [](const Value& value, Train& into) {
           into.skip_steps.clear();
           for (const auto& step : *value.list()) into.skip_steps.push_back(*step.integer());
         }},
        field(
            &Train::export_path,
            {.name = "train.export",
             .type = Type::text,
             .help = "A .safetensors file for the final weights, written when the run completes."}),
        field(&Train::device, {.name = "train.device",
                               .type = Type::choice,
                               .fallback = "cpu",
                               .choices = {"cpu", "cuda"},
                               .help = "Compute device: the CPU cores, or one GPU for each device "
                                       "of the plan. In fp32 both give the same bits."}),
        field(&Train::graph_rows,
              {.name = "train.graph_rows",
               .fallback = 4096,
               .least = 0,
               .help = "On GPUs: largest pass of a stage (in tokens, samples or image rows) that "
                       "is captured as a CUDA graph, together with the optimizer step after it. A "
                       "replay takes one kernel launch instead of hundreds. Results do not change. "
                       "0 disables graphs."}),
        field(&Train::threads,
              {.name = "train.threads",
               .type = Type::count_or_auto,
               .fallback = "auto",
               .least = 1,
               .most = 4096,
               .help =
                   "Compute threads per CPU device; \"auto\" is the device's share of the cores."}),
    };
  }
};

/// The texts that a language model writes while it trains.
struct Sample {
  std::optional<std::int64_t> every;  // Empty: no samples.
  std::string prompt;
  std::int64_t tokens = 0;
  double temperature = 0;
  std::uint64_t seed = 0;

  static Fields<Sample> fields() {
    return {
        field(&Sample::every,
              {.name = "sample.every",
               .least = 1,
               .most = most_steps,
               .help = "Steps between two samples: texts that a language model writes with the "
                       "weights of that step, which are saved for it. Default: no samples."}),
        field(&Sample::prompt, {.name = "sample.prompt",
                                .type = Type::text,
                                .fallback = "",
                                .help = "The text that a sample continues."}),
        field(&Sample::tokens, {.name = "sample.tokens",
                                .fallback = 100,
                                .least = 1,
                                .most = 1024,
                                .help = "Tokens of a sample."}),
        field(&Sample::temperature,
              {.name = "sample.temperature",
               .type = Type::number,
               .fallback = 1.0,
               .least = 0,
               .most = 100,
               .help = "Sampling temperature; 0 always takes the likeliest token."}),
        field(&Sample::seed, {.name = "sample.seed",
                              .fallback = 1,
                              .most = 9e15,
                              .help = "Random seed of samples, the same for each of them."}),
    };
  }
};

/// The progress output.
struct Log {
  std::int64_t every = 10;  // Steps.
  bool staleness = true;
  bool tensorboard = false;

  static Fields<Log> fields() {
    using enum Half;
    constexpr auto live = Change::live;
    return {
        field(&Log::every,
              {.name = "log.every",
               .fallback = 10,
               .least = 1,
               .change = live,
               .help = "Steps between two progress lines if the output is not a terminal."}),
        field(&Log::staleness,
              {.name = "log.staleness",
               .type = Type::boolean,
               .fallback = true,
               .help = "Record gradient delays in the step events of asynchronous runs. This reads "
                       "all weights once per delayed micro-batch."}),
        field(&Log::tensorboard,
              {.name = "log.tensorboard",
               .type = Type::boolean,
               .fallback = false,
               .help = "Write the numbers of steps and evaluations to runs/NAME/tensorboard, where "
                       "TensorBoard finds them."}),
    };
  }
};

}  // namespace troupe::config::section
