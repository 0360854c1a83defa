#pragma once

#include <cstdint>
#include <vector>

#include "core/digest.h"
#include "storage/checkpoint/ledger.h"

namespace troupe::simulation {

/// A model whose weights are a number for each unit, and whose step mixes them with the samples
/// that were read: whoever does something twice, not at all or out of order has other numbers from
/// then on. Which node has which unit does not matter to them.
class TinyModel {
 public:
  using Weights = std::vector<std::uint64_t>;  // By unit.

  TinyModel(int units, const storage::LedgerTerms& terms) : units_(units), terms_(terms) {}

  int units() const { return units_; }
  const storage::LedgerTerms& terms() const { return terms_; }
  /// Of the samples of the step after so many.
  Digest read(std::int64_t steps_done) const;
  Weights initial() const;
  static std::uint64_t gradient(std::uint64_t weight, const Digest& samples);
  /// From the gradients of all units.
  static std::uint64_t decide(const Weights& gradients);
  static std::uint64_t apply(std::uint64_t weight, std::uint64_t decided);

  /// What one process that never fails has after so many steps.
  const Weights& after(std::int64_t steps) const;

 private:
  int units_;
  storage::LedgerTerms terms_;
  mutable std::vector<Weights> after_;
};

}  // namespace troupe::simulation
