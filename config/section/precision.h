#pragma once

#include <cstdint>
#include <optional>

#include "config/fields.h"

namespace troupe::config::section {

/// The types of activations and products.
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

  static Fields<Precision> fields() {
    using enum Half;
    return {
        field(&Precision::compute,
              {.name = "precision.compute",
               .type = Type::choice,
               .fallback = "auto",
               .choices = {"fp32", "tf32", "fp16", "fp16-chain", "fp16-gpu", "bf16", "bf16-pairs",
                           "bf16-blocks", "bf16-gpu", "auto"},
               .half = recipe,
               .help =
                   "The type of activations and of the weights they meet; \"auto\" is the best "
                   "that all devices have. \"bf16\" adds products in the order that the processor "
                   "is fastest at: \"bf16-blocks\" as AMX has it, \"bf16-pairs\" as AVX-512 has "
                   "it; \"fp16\", which scales the loss, as fp32 does: \"fp16-chain\". Whoever "
                   "names one of these has the same bits on every processor. With train.device = "
                   "\"cuda\" \"bf16\" and \"auto\" mean \"bf16-gpu\", and \"fp16\" means "
                   "\"fp16-gpu\": by the tensor cores and in NVIDIA's order, as \"tf32\", which is "
                   "fp32 whose products have the precision of fp16. They have the same bits each "
                   "time on GPUs of one kind, and on nothing else."}),
        field(&Precision::loss_scale_power,
              {.name = "precision.loss_scale.initial_power",
               .fallback = 16,
               .most = 24,
               .half = recipe,
               .help = "fp16 only: the first loss scale is 2 to this power. It halves with every "
                       "step that overflows, down to 1."}),
        field(&Precision::growth_interval,
              {.name = "precision.loss_scale.growth_interval",
               .fallback = 2000,
               .least = 1,
               .half = recipe,
               .help = "fp16 only: steps in a row without overflow after which the loss scale "
                       "doubles, up to 2 to the power of 24."}),
    };
  }
};

}  // namespace troupe::config::section
