#pragma once

#include <cstdint>
#include <vector>

#include "core/digest.h"
#include "storage/checkpoint/ledger.h"

namespace troupe::simulation {

/// A model with one integer weight per unit. A step mixes the weights with the sample ids, so
/// repeated, missing or reordered steps give different weights from then on. The placement of units
/// on nodes has no effect.
class TinyModel {
 public:
  using Weights = std::vector<std::uint64_t>;  // Indexed by unit.

  TinyModel(int units, const storage::LedgerTerms& terms) : units_(units), terms_(terms) {}

  int units() const { return units_; }
  const storage::LedgerTerms& terms() const { return terms_; }
  /// Returns the digest of the sample ids of the next step.
  Digest read(std::int64_t steps_done) const;
  Weights initial() const;
  static std::uint64_t gradient(std::uint64_t weight, const Digest& samples);
  /// Combines the gradients of all units.
  static std::uint64_t decide(const Weights& gradients);
  static std::uint64_t apply(std::uint64_t weight, std::uint64_t decided);

  /// Returns the weights of a failure-free run after `steps` steps.
  const Weights& after(std::int64_t steps) const;

 private:
  int units_;
  storage::LedgerTerms terms_;
  mutable std::vector<Weights> after_;
};

}  // namespace troupe::simulation
