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

/// The sharings that a loss would ask for, most likely first: this one, and those that are left
/// when any one node goes, or any two. Nodes with as many cores are alike, so that they are few; of
/// nodes of many kinds these are the first ones.
std::vector<Sharing> neighbours_of(const Sharing& sharing);

/// How a run is shared out after a loss, found before there is one: then it need only be looked up.
/// Any thread. The destructor waits for the search that is under way.
class Foresight {
 public:
  /// On a thread of its own: this sharing, and its neighbours. What was foreseen for another goes,
  /// where it is none of them.
  void look_ahead(const Sharing& now);
  /// At once where that was foreseen; else what can be found promptly.
  Shares shares(const Sharing& wanted) const;
  /// Once nothing is left to be found: whether this was.
  bool foresaw(const Sharing& wanted) const;

 private:
  void search();
  std::optional<Sharing> next() const;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::vector<Sharing> wanted_;
  std::map<Sharing, Shares> found_;
  Worker worker_{"foresight"};  // Last: its thread uses the others.
};

}  // namespace troupe::actors
