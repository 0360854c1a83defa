#pragma once

#include <optional>
#include <string>

#include "core/value.h"
#include "storage/checkpoint/ledger.h"

namespace troupe::storage {

/// What only the parts of ledger.h share: what its records say.

struct Beginning {
  std::int64_t after = 0;
  LedgerTerms terms;
};

/// A checkpoint of so many steps is on the disk.
struct SavedStep {
  std::int64_t step = 0;
  std::string below;           // The folder that has it.
  std::int64_t committed = 0;  // The newest step in the ledger by then.
};

Value to_record(const Beginning& beginning);
Value to_record(const SavedStep& saved);
Value to_record(const LedgerStep& step);

/// Nothing where the record is of another kind, or does not say all.
std::optional<Beginning> beginning_of(const Value& record);
std::optional<SavedStep> saved_of(const Value& record);
std::optional<LedgerStep> step_of(const Value& record);

}  // namespace troupe::storage
