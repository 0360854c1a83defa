#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/fields.h"
#include "schedules/exchange.h"
#include "schedules/recompute.h"

namespace troupe::config::section {

constexpr double most_stages = 4096;

/// How many stages there are, and where they begin.
struct Stages {
  std::optional<int> count;
  std::vector<int> boundaries;  // Empty, or count + 1 of them: 0, ..., the number of units.
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

/// How the layers lie on devices, and in which order they compute.
struct Pipeline {
  std::string schedule;  // A name, a file or "auto".
  Stages stages;
  int chunks = 1;
  std::optional<int> replicas;  // Nothing: as go best with the devices that are there.
  int tensor = 1;
  schedules::Recompute recompute;
  std::optional<std::int64_t> memory;  // Bytes that a device may use.

  static Fields<Pipeline> fields() {
    using enum Half;
    return {
        field(&Pipeline::schedule, {.name = "pipeline.schedule",
                                    .type = Type::text,
                                    .fallback = "1f1b",
                                    .half = shape,
                                    .help = "The order of the passes: a name that `troupe schedule "
                                            "--list` shows, a file, or \"auto\"."}),
        {{.name = "pipeline.stages",
          .type = Type::stages,
          .fallback = "auto",
          .least = 1,
          .most = most_stages,
          .half = shape,
          .help =
              "Pieces of consecutive layers: how many, \"auto\", or boundaries such as [0, 3, 6]."},
         [](const Value& value, Pipeline& into) { read_stages(value, into.stages); }},
        field(&Pipeline::chunks,
              {.name = "pipeline.chunks",
               .fallback = 1,
               .least = 1,
               .most = 64,
               .half = shape,
               .help = "Stages on one device: a pipeline has stages / chunks devices."}),
        field(&Pipeline::replicas,
              {.name = "pipeline.replicas",
               .type = Type::count_or_auto,
               .fallback = 1,
               .least = 1,
               .most = most_stages,
               .half = shape,
               .help =
                   "Copies of the pipeline that share the samples of a step; \"auto\" is as many "
                   "as the devices that are there go best with, of those that divide the groups."}),
        field(&Pipeline::tensor, {.name = "pipeline.tensor",
                                  .fallback = 1,
                                  .least = 1,
                                  .most = 64,
                                  .half = recipe,
                                  .help = "Shards of each layer. This version does not cut layers: "
                                          "training and plans take 1 alone."}),
        {{.name = "pipeline.recompute",
          .type = Type::switches,
          .fallback = false,
          .half = shape,
          .help = "Whether a stage keeps its input alone and computes the rest again: less memory, "
                  "more time. A list says it of each stage, and wants the boundaries of stages."},
         [](const Value& value, Pipeline& into) { read_recompute(value, into.recompute); }},
        field(&Pipeline::memory,
              {.name = "pipeline.memory",
               .type = Type::bytes_or_auto,
               .fallback = "auto",
               .least = 0x1p20,
               .most = 0x1p60,
               .help = "What a device may use of its memory; \"auto\" is all of it."}),
    };
  }
};

/// How replicas share their work.
struct Parallel {
  using Exchange = schedules::Exchange;
  std::optional<int> groups;
  Exchange exchange = Exchange::all_to_all;
  std::optional<bool> shard_optimizer;  // What `exchange` must come to, where somebody says so.

  static Fields<Parallel> fields() {
    using enum Half;
    return {
        field(&Parallel::groups, {.name = "parallel.groups",
                                  .type = Type::count_or_auto,
                                  .fallback = "auto",
                                  .least = 1,
                                  .most = most_stages,
                                  .half = recipe,
                                  .help = "Groups of consecutive micro-batches whose gradients are "
                                          "summed first: as many replicas are possible. \"auto\" "
                                          "is the largest divisor of their number up to 8."}),
        {{.name = "parallel.reduction",
          .type = Type::choice,
          .fallback = "tree",
          .choices = {"tree"},
          .half = recipe,
          .help = "How the groups' sums are added up: as a binary tree that no plan changes."},
         {}},
        field(&Parallel::exchange,
              {.name = "parallel.exchange",
               .type = Type::choice,
               .fallback = "all_to_all",
               .choices = {"all_to_all", "server"},
               .help = "Where the gradients of replicas come together: each replica has a part of "
                       "every stage and keeps the optimizer's state of that part alone, or the "
                       "first replica has all. Changes no number."}),
        field(&Parallel::shard_optimizer,
              {.name = "parallel.shard_optimizer",
               .type = Type::boolean,
               .help = "Wants each replica to keep a part of the optimizer's state alone (true: "
                       "that is so with exchange = \"all_to_all\"), or one of them all (false: "
                       "\"server\"). Left out: as `exchange` has it."}),
    };
  }
};

}  // namespace troupe::config::section
