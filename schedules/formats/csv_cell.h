#pragma once

#include <optional>
#include <string_view>

#include "schedules/schedule.h"

namespace troupe::schedules {

/// One end of a transfer; torch's tables list both ends.
enum class TransferEnd { send_activation, receive_activation, send_gradient, receive_gradient };

/// One word of a table: "2F0" is an action, "2SEND_F0" an end of a transfer.
struct CsvCell {
  int stage = 0;
  std::optional<Kind> kind;
  std::optional<TransferEnd> transfer;  // Set if and only if `kind` is not.
  int micro_batch = 0;
};

std::optional<CsvCell> parse_csv_cell(std::string_view text);

/// Returns torch's word for a kind of action, or an empty one if torch has none.
std::string_view csv_word(Kind kind);

}  // namespace troupe::schedules
