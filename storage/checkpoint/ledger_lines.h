#pragma once

#include <optional>
#include <string>

#include "core/value.h"
#include "storage/checkpoint/ledger.h"

namespace troupe::storage {

/// The records of a ledger. Shared by the sources behind ledger.h only.

struct Beginning {
  std::int64_t after = 0;
  LedgerTerms terms;
};

/// The record of a checkpoint of `step` on the disk.
struct SavedStep {
  std::int64_t step = 0;
  std::string below;           // The folder with the checkpoint.
  std::int64_t committed = 0;  // The newest step in the ledger at that time.
};

Value to_record(const Beginning& beginning);
Value to_record(const SavedStep& saved);
Value to_record(const LedgerStep& step);

/// Parses a record. Returns nothing if it is of another kind or incomplete.
std::optional<Beginning> beginning_of(const Value& record);
std::optional<SavedStep> saved_of(const Value& record);
std::optional<LedgerStep> step_of(const Value& record);

}  // namespace troupe::storage
