#pragma once

#include <condition_variable>
#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "actors/nodes/shares.h"
#include "core/threads/worker.h"

namespace troupe::actors {

constexpr std::size_t most_foreseen = 128;

/// Returns the sharings that may be needed soon, most likely first: this one, and those after the
/// loss of one or two nodes. Nodes with equal core counts are interchangeable, so there are few; at
/// most `most_foreseen` are returned.
std::vector<Sharing> neighbours_of(const Sharing& sharing);

/// Computes in advance how a run is shared out after a loss, so that it only needs to be looked up
/// then. Thread-safe. The destructor waits for a running search.
class LossPlans {
 public:
  /// Searches for this sharing and its neighbors, on its own thread. Forgets results for other
  /// sharings.
  void look_ahead(const Sharing& now);
  /// Returns the result for a sharing if it exists, and otherwise that of a quick search.
  Shares shares(const Sharing& wanted) const;
  /// Waits until all searches are done. Returns whether this sharing was among them.
  bool foresaw(const Sharing& wanted) const;

 private:
  void search();
  std::optional<Sharing> next() const;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::vector<Sharing> wanted_;
  std::map<Sharing, Shares> found_;
  Worker worker_{{"loss plans"}};  // Declared last: its thread uses the other members.
};

}  // namespace troupe::actors
