#include "apps/gpu/card.h"

#include <algorithm>
#include <array>

namespace troupe::apps {
namespace {

// NVIDIA's datasheets give the rates of tensor cores with and without sparsity. These are without.
constexpr std::array<Card, 3> cards{{
    {.name = "a100",
     .title = "NVIDIA A100 SXM with 80 GB",
     .datasheet = {.source = "datasheet",
                   .bytes = 2.039e12,
                   .fp32 = 19.5e12,
                   .tf32 = 156e12,
                   .bits16 = 312e12},
     .measured = std::nullopt},
    {.name = "h100",
     .title = "NVIDIA H100 SXM",
     .datasheet = {.source = "datasheet",
                   .bytes = 3.35e12,
                   .fp32 = 66.9e12,
                   .tf32 = 494.7e12,
                   .bits16 = 989.4e12},
     .measured = CardPeaks{.source = "reported by others for a copy and a large product",
                           .bytes = 3.0e12,
                           .bits16 = 798e12}},
    {.name = "h200",
     .title = "NVIDIA H200",
     .datasheet = {.source = "datasheet",
                   .bytes = 4.8e12,
                   .fp32 = 66.9e12,
                   .tf32 = 494.7e12,
                   .bits16 = 989.4e12},
     .measured = CardPeaks{.source = "measured by `troupe bench gpu` on 2026-11-26",
                           .bytes = 4.25e12,
                           .bits16 = 790e12}},
}};

}  // namespace

double CardPeaks::operations(kernels::Factors factors) const {
  switch (factors) {
    case kernels::Factors::fp32:
      return fp32;
    case kernels::Factors::tf32:
      return tf32;
    case kernels::Factors::bits16:
      return bits16;
  }
  return 0;
}

double CardPeaks::seconds(const kernels::KernelCall& call) const {
  const double moving = call.bytes / bytes;
  if (call.operations == 0) return moving;
  return std::max(moving, call.operations / operations(call.factors));
}

const Card* find_card(std::string_view name) {
  const auto found = std::ranges::find(cards, name, &Card::name);
  return found == cards.end() ? nullptr : &*found;
}

std::vector<std::string> card_names() {
  std::vector<std::string> names;
  for (const auto& card : cards) names.emplace_back(card.name);
  return names;
}

}  // namespace troupe::apps
