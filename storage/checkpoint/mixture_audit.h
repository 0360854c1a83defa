#pragma once

#include <cstdint>
#include <span>

#include "storage/checkpoint/ledger.h"

namespace troupe::storage {

/// The parts of an audit that are about mixtures. Only audit.cpp uses them.

/// Checks that an attempt which begins after a step reads samples in the order of the attempt
/// before. The weights of a mixture and the steps that are left out may differ from that step on.
Status match_terms(const LedgerTerms& before, const LedgerTerms& now, std::int64_t after);

/// Checks the recorded number of a step's samples of each source.
Status match_counts(std::span<const std::int64_t> recorded, std::span<const std::int64_t> wanted);

/// Counts the samples of each source in the committed steps of a mixture.
void count_sources(const LedgerTerms& terms, const SampleOrder& order, Audit& audit);

}  // namespace troupe::storage
