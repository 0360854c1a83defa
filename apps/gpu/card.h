#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/rehearsed/kernel_call.h"

namespace troupe::apps {

/// The most that a GPU does in a second. 0: unknown.
struct CardPeaks {
  std::string_view source;
  double bytes = 0;  // Bytes that its memory reads and writes.
  // Operations in dense products.
  double fp32 = 0;
  double tf32 = 0;
  double bits16 = 0;

  double operations(kernels::Factors factors) const;
  /// Returns the longer of the times for the call's bytes and for its operations.
  double seconds(const kernels::KernelCall& call) const;
};

/// A GPU whose peaks are known.
struct Card {
  std::string_view name;   // "h100", in lower case.
  std::string_view title;  // "NVIDIA H100 SXM".
  CardPeaks datasheet;
  std::optional<CardPeaks> measured;
};

/// Returns null if the name is unknown.
const Card* find_card(std::string_view name);
std::vector<std::string> card_names();

}  // namespace troupe::apps
