#pragma once

#include <optional>
#include <string_view>

#include "schedules/schedule.h"

namespace troupe::schedules {

/// A tensor on its way, as torch's tables list both its ends.
enum class TransferEnd { send_activation, receive_activation, send_gradient, receive_gradient };

/// What one word of a table says: "2F0" an action, "2SEND_F0" an end of a transfer.
struct CsvCell {
  int stage = 0;
  std::optional<Kind> kind;
  std::optional<TransferEnd> transfer;  // Exactly one of the two.
  int micro_batch = 0;
};

std::optional<CsvCell> parse_csv_cell(std::string_view text);

/// Torch's word for a kind of action; empty if it has none.
std::string_view csv_word(Kind kind);

}  // namespace troupe::schedules
