#pragma once

#include <optional>

#include "core/value.h"
#include "storage/ledger.h"

namespace troupe::storage {

/// What only the parts of ledger.h share: what its records say.

struct Beginning {
  std::int64_t after = 0;
  LedgerTerms terms;
};

Value to_record(const Beginning& beginning);
Value to_record(const LedgerStep& step);

/// Nothing where the record is of another kind, or does not say all.
std::optional<Beginning> beginning_of(const Value& record);
std::optional<LedgerStep> step_of(const Value& record);

}  // namespace troupe::storage
