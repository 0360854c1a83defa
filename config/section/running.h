#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "config/fields.h"

namespace troupe::config::section {

constexpr double most_steps = 1e12;

/// What happens when nodes come and go.
struct Elastic {
  enum class OnPreempt { handover, checkpoint, drop };
  CountRange nodes;
  OnPreempt on_preempt = OnPreempt::handover;
  int copies = 2;

  static Fields<Elastic> fields() {
    using enum Half;
    constexpr auto live = Change::live;
    constexpr double most_nodes = 4096;
    return {
        field(&Elastic::nodes,
              {.name = "elastic.nodes",
               .type = Type::range,
               .fallback = "1:4096",
               .least = 1,
               .most = most_nodes,
               .change = live,
               .help = "With how few nodes the run goes on, and how many it takes: \"1:8\"."}),
        field(
            &Elastic::on_preempt,
            {.name = "elastic.on_preempt",
             .type = Type::choice,
             .fallback = "handover",
             .choices = {"handover", "checkpoint", "drop"},
             .change = live,
             .help =
                 "What a node does that is told to go: hands over its part, saves, or just goes."}),
        field(&Elastic::copies, {.name = "elastic.copies",
                                 .fallback = 2,
                                 .least = 1,
                                 .most = 8,
                                 .change = live,
                                 .help = "Of every shard in the memory of different hosts, the "
                                         "owner's included; 1 is disk only."}),
    };
  }
};

/// What is saved, where and how often.
struct Checkpoint {
  std::string directory;  // With the run's name in it.
  Interval every;
  int keep = 3;

  static Fields<Checkpoint> fields() {
    using enum Half;
    constexpr auto live = Change::live;
    return {
        field(&Checkpoint::directory,
              {.name = "checkpoint.dir",
               .type = Type::text,
               .fallback = "runs/{name}/checkpoints",
               .help = "Where checkpoints are kept; {name} is the run's name."}),
        field(&Checkpoint::every,
              {.name = "checkpoint.every",
               .type = Type::interval,
               .fallback = "5m",
               .change = live,
               .help = "How often one is saved: \"100 steps\", or a duration."}),
        field(&Checkpoint::keep, {.name = "checkpoint.keep",
                                  .fallback = 3,
                                  .least = 1,
                                  .most = 1e6,
                                  .help = "How many of the newest stay."}),
    };
  }
};

/// How long a run trains, and what it does on the way.
struct Train {
  std::int64_t steps = 0;
  std::optional<std::int64_t> eval_every;  // Nothing: no evaluation on the way.
  std::int64_t eval_batches = 1;
  std::optional<std::string> export_path;  // Nothing: nothing is written.
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
                              .help = "After how many optimizer steps the run is done."}),
        field(
            &Train::eval_every,
            {.name = "train.eval_every",
             .least = 1,
             .most = most_steps,
             .change = live,
             .help = "Steps between two evaluations on data.validate; without it one at the end."}),
        field(&Train::eval_batches,
              {.name = "train.eval_batches",
               .fallback = 8,
               .least = 1,
               .change = live,
               .help = "How many batches an evaluation takes, the same ones each time."}),
        field(
            &Train::export_path,
            {.name = "train.export",
             .type = Type::text,
             .help = "A .safetensors file for the final weights, written when the run ends well."}),
        field(&Train::device, {.name = "train.device",
                               .type = Type::choice,
                               .fallback = "cpu",
                               .choices = {"cpu", "cuda"},
                               .help = "What computes: the cores, or GPUs, one for each device of "
                                       "the plan, in turn. Both give the same bits in fp32."}),
        field(&Train::graph_rows,
              {.name = "train.graph_rows",
               .fallback = 4096,
               .least = 0,
               .help = "On GPUs: a stage's pass over at most so many tokens, or samples, or lines "
                       "of images, is played as a CUDA graph when it comes again, by one launch in "
                       "place of hundreds; so is the optimizer's step behind such passes. No "
                       "number changes. 0: never."}),
        field(
            &Train::threads,
            {.name = "train.threads",
             .type = Type::count_or_auto,
             .fallback = "auto",
             .least = 1,
             .most = 4096,
             .help = "Threads that compute on a CPU device; \"auto\" is its share of the cores."}),
    };
  }
};

/// What a run prints.
struct Log {
  std::int64_t every = 10;  // Steps.
  bool staleness = true;

  static Fields<Log> fields() {
    using enum Half;
    constexpr auto live = Change::live;
    return {
        field(&Log::every, {.name = "log.every",
                            .fallback = 10,
                            .least = 1,
                            .change = live,
                            .help = "Steps between two lines where the output is no terminal."}),
        field(&Log::staleness,
              {.name = "log.staleness",
               .type = Type::boolean,
               .fallback = true,
               .help = "Whether the events of an asynchronous run's steps tell how late gradients "
                       "were: costs a look at all weights for each late micro-batch."}),
    };
  }
};

}  // namespace troupe::config::section
