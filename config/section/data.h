#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "config/schema/fields.h"

namespace troupe::config::section {

/// The training and validation data.
struct Data {
  enum class Order { shuffled, sequential };
  std::string train;  // Empty: `mix` has the training data.
  std::optional<std::string> mix;
  std::optional<std::string> validate;  // Empty: no evaluation.
  Order order = Order::shuffled;

  static Fields<Data> fields() {
    using enum Half;
    return {
        field(&Data::train, {.name = "data.train",
                             .type = Type::text,
                             .fallback = "",
                             .half = recipe,
                             .help = "Training data: synthetic (\"made:markov?states=64\"), a text "
                                     "file, .jsonl, .bin token shards, IDX or .safetensors."}),
        field(&Data::mix,
              {.name = "data.mix",
               .type = Type::text,
               .half = recipe,
               .change = Change::live,
               .help = "Training data from several sources, in place of data.train, by weights: "
                       "\"a.bin 7, b.bin 2; from 2000: a.bin 1, b.bin 1\". `troupe set` changes "
                       "the weights from a step on."}),
        field(&Data::validate,
              {.name = "data.validate",
               .type = Type::text,
               .help = "Validation data of the same kind as data.train. Default: no evaluation."}),
        field(&Data::order,
              {.name = "data.order",
               .type = Type::choice,
               .fallback = "shuffled",
               .choices = {"shuffled", "sequential"},
               .half = recipe,
               .help = "Sample order: shuffled by the seed and the epoch, or as stored."}),
    };
  }
};

/// The batch sizes.
struct Batch {
  std::int64_t global = 1;
  std::optional<std::int64_t> micro;

  static Fields<Batch> fields() {
    using enum Half;
    return {
        field(&Batch::global, {.name = "batch.global",
                               .presence = Key::Presence::required,
                               .least = 1,
                               .half = recipe,
                               .help = "Global batch size: samples in one optimizer step. It stays "
                                       "constant when nodes join or leave."}),
        field(&Batch::micro,
              {.name = "batch.micro",
               .type = Type::count_or_auto,
               .fallback = "auto",
               .least = 1,
               .half = recipe,
               .help = "Micro-batch size: samples that pass through a stage at once."}),
    };
  }
};

}  // namespace troupe::config::section
