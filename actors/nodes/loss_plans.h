#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "actors/nodes/shares.h"
#include "core/env.h"

namespace troupe::actors {

constexpr std::size_t most_foreseen = 128;

/// Returns the relevant parts of the sharings that may be needed soon, most likely first: of this
/// one, and of those after the loss of one or two nodes. Nodes with equal core counts are
/// interchangeable, so there are few; at most `most_foreseen` are returned.
std::vector<Sharing> neighbours_of(const Sharing& sharing);

/// Computes in advance how a run is shared out after a loss, so that it only needs to be looked up
/// then. Its functions are called on one loop, which ends before this is destroyed.
class LossPlans {
 public:
  explicit LossPlans(Loop& loop) : loop_(loop) {}

  /// Searches for this sharing and its neighbors, aside. Forgets results for other sharings.
  void look_ahead(const Sharing& now);
  /// Returns the result for a sharing if it exists, and otherwise that of a quick search.
  Shares shares(const Sharing& wanted) const;
  /// Returns whether the result for a sharing exists.
  bool foresaw(const Sharing& wanted) const;

 private:
  void search();
  std::optional<Sharing> next() const;

  Loop& loop_;
  bool is_searching_ = false;
  std::vector<Sharing> wanted_;
  std::map<Sharing, Shares> found_;  // Keyed by relevant parts.
};

}  // namespace troupe::actors
