#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/schema/fields.h"
#include "models/cuts.h"
#include "schedules/exchange.h"
#include "schedules/recompute.h"

namespace troupe::config::section {

constexpr double most_stages = 4096;

/// The number of stages and their boundaries.
struct Stages {
  std::optional<int> count;
  std::vector<int> boundaries;  // Empty, or count + 1 unit numbers: 0, ..., units.
};

inline void read_stages(const Value& value, Stages& stages) {
  if (const auto* count = value.integer()) stages.count = static_cast<int>(*count);
  if (const auto* list = value.list()) {
    for (const auto& boundary : *list)
      stages.boundaries.push_back(static_cast<int>(*boundary.integer()));
    stages.count = static_cast<int>(list->size()) - 1;
  }
}

inline void read_recompute(const Value& value, schedules::Recompute& recompute) {
  if (const auto* everywhere = value.boolean()) recompute.everywhere = *everywhere;
  if (const auto* list = value.list())
    for (const auto& stage : *list) recompute.by_stage.push_back(*stage.boolean());
}

/// The assignment of layers to devices and the order of their passes.
struct Pipeline {
  std::string schedule;  // A name, a file or "auto".
  Stages stages;
  models::Cuts cuts = models::Cuts::layers;
  int chunks = 1;
  std::optional<int> replicas;  // Empty: the best number for the connected devices.
  int tensor = 1;
  schedules::Recompute recompute;
  std::optional<std::int64_t> memory;  // The memory limit of a device in bytes.

  static Fields<Pipeline> fields() {
    using enum Half;
    return {
        field(
            &Pipeline::schedule,
            {.name = "pipeline.schedule",
             .type = Type::text,
             .fallback = "1f1b",
             .half = shape,
             .help =
                 "Pipeline schedule: a name from `troupe schedule --list`, a file, or \"auto\"."}),
        {{.name = "pipeline.stages",
          .type = Type::stages,
          .fallback = "auto",
          .least = 1,
          .most = most_stages,
          .half = shape,
          .help = "Pipeline stages (groups of consecutive layers): their number, \"auto\", or "
                  "layer boundaries such as [0, 3, 6]."},
         [](const Value& value, Pipeline& into) { read_stages(value, into.stages); }},
        field(
            &Pipeline::cuts,
            {.name = "pipeline.cuts",
             .type = Type::choice,
             .fallback = "layers",
             .choices = {"layers", "sublayers"},
             .half = shape,
             .help = "Where stages may begin: between layers, or also within them, between "
                     "attention and feed-forward network (sublayers), which makes few stages "
                     "more equal. Boundaries in pipeline.stages then count sublayers. Synchronous "
                     "training gives the same results with both.",
             .is_later = true}),
        field(&Pipeline::chunks,
              {.name = "pipeline.chunks",
               .fallback = 1,
               .least = 1,
               .most = 64,
               .half = shape,
               .help = "Stages per device: a pipeline uses stages / chunks devices."}),
        field(&Pipeline::replicas,
              {.name = "pipeline.replicas",
               .type = Type::count_or_auto,
               .fallback = 1,
               .least = 1,
               .most = most_stages,
               .half = shape,
               .help = "Data-parallel copies of the pipeline. \"auto\" picks the fastest number "
                       "for the available devices among the divisors of parallel.groups."}),
        field(&Pipeline::tensor,
              {.name = "pipeline.tensor",
               .fallback = 1,
               .least = 1,
               .most = 64,
               .half = recipe,
               .help = "Tensor-parallel shards of each layer. This version supports only 1."}),
        {{.name = "pipeline.recompute",
          .type = Type::switches,
          .fallback = false,
          .half = shape,
          .help = "Activation checkpointing: keep only a stage's input and recompute its "
                  "activations in the backward pass. This takes less memory and more time. A list "
                  "has one value per stage; it requires pipeline.stages as boundaries."},
         [](const Value& value, Pipeline& into) { read_recompute(value, into.recompute); }},
        field(&Pipeline::memory,
              {.name = "pipeline.memory",
               .type = Type::bytes_or_auto,
               .fallback = "auto",
               .least = 0x1p20,
               .most = 0x1p60,
               .help = "Memory limit per device; \"auto\" is all of its memory."}),
    };
  }
};

/// Data parallelism.
struct Parallel {
  using Exchange = schedules::Exchange;
  std::optional<int> groups;
  Exchange exchange = Exchange::all_to_all;

  static Fields<Parallel> fields() {
    using enum Half;
    return {
        field(&Parallel::groups,
              {.name = "parallel.groups",
               .type = Type::count_or_auto,
               .fallback = "auto",
               .least = 1,
               .most = most_stages,
               .half = recipe,
               .help = "Number of groups of consecutive micro-batches whose gradients are summed "
                       "first. It is the largest possible number of replicas. \"auto\" is the "
                       "largest divisor, up to 8, of the number of micro-batches in a step."}),
        field(&Parallel::exchange,
              {.name = "parallel.exchange",
               .type = Type::choice,
               .fallback = "all_to_all",
               .choices = {"all_to_all", "server"},
               .help = "Where replicas reduce gradients: all_to_all shards each stage's gradients "
                       "and optimizer state over the replicas (as ZeRO does); server reduces at "
                       "the first replica. Results do not depend on it."}),
    };
  }
};

}  // namespace troupe::config::section
