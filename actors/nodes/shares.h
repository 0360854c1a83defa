#pragma once

#include <cstddef>
#include <vector>

namespace troupe::actors {

/// The problem of sharing a run's devices out among nodes. It contains all inputs of the search, so
/// that results can be computed in advance.
struct Sharing {
  std::vector<double> work;  // Indexed by device.
  std::vector<int> cores;    // Indexed by node, most first.
  int most = 1;              // The most nodes to use.

  /// Returns how many nodes get work.
  std::size_t seats() const;

  friend auto operator<=>(const Sharing&, const Sharing&) = default;
};

/// Returns the part of a sharing that decides the shares: the fastest nodes, as many as can get
/// work. A slower node never takes the place of a faster one.
Sharing relevant_part(Sharing sharing);

/// A solution, by process.
struct Shares {
  std::vector<int> cores;  // Cores of each process's node.
  std::vector<int> cuts;   // Process k has the devices from cuts[k] up to cuts[k + 1].
  double busiest = 0;      // The most work per core of any process, which determines the step time.
};

enum class Search {
  prompt,    // Tens of milliseconds, for any number of nodes.
  thorough,  // Seconds, for a hundred different nodes.
};

/// Minimizes the most work per core. Sharings with equal relevant parts always give equal shares,
/// for each kind of search.
Shares share_out(const Sharing& sharing, Search search);

}  // namespace troupe::actors
