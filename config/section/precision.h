#pragma once

#include <cstdint>
#include <optional>

#include "config/schema/fields.h"

namespace troupe::config::section {

/// The number formats of activations and products.
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
        field(
            &Precision::compute,
            {.name = "precision.compute",
             .type = Type::choice,
             .fallback = "auto",
             .choices = {"fp32", "tf32", "fp16", "fp16-chain", "fp16-gpu", "bf16", "bf16-pairs",
                         "bf16-blocks", "bf16-gpu", "auto"},
             .half = recipe,
             .help = "Type of activations and of weights in matrix products. \"auto\" is the "
                     "fastest type that all devices support. On CPUs \"bf16\" means the summation "
                     "order that is fastest there: \"bf16-blocks\" (AMX) or \"bf16-pairs\" "
                     "(AVX-512). \"fp16\" scales the loss and means \"fp16-chain\", which sums in "
                     "the order of fp32. \"bf16-blocks\", \"bf16-pairs\" and \"fp16-chain\" give "
                     "the same bits on every processor. With train.device = \"cuda\", \"bf16\" and "
                     "\"auto\" mean \"bf16-gpu\", and \"fp16\" means \"fp16-gpu\". \"bf16-gpu\", "
                     "\"fp16-gpu\" and \"tf32\" (fp32 with products rounded to 10 fraction bits) "
                     "use tensor cores. Their bits are reproducible only on GPUs of one model."}),
        field(&Precision::loss_scale_power,
              {.name = "precision.loss_scale.initial_power",
               .fallback = 16,
               .most = 24,
               .half = recipe,
               .help = "fp16 only: the initial loss scale is 2 to this power. Each step that "
                       "overflows halves it, down to 1."}),
        field(&Precision::growth_interval,
              {.name = "precision.loss_scale.growth_interval",
               .fallback = 2000,
               .least = 1,
               .half = recipe,
               .help = "fp16 only: consecutive steps without overflow before the loss scale "
                       "doubles, up to 2 to the power of 24."}),
    };
  }
};

}  // namespace troupe::config::section
