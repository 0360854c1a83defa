#pragma once

#include <vector>

namespace troupe::actors {

/// The problem of sharing a run's devices out among nodes. It contains all inputs of the search, so
/// that results can be computed in advance.
struct Sharing {
  std::vector<double> work;  // Indexed by device.
  std::vector<int> cores;    // Indexed by node, most first.
  int most = 1;              // The most nodes to use.

  friend auto operator<=>(const Sharing&, const Sharing&) = default;
};

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

/// Minimizes the most work per core. Equal sharings always give equal shares, for each kind of
/// search.
Shares share_out(const Sharing& sharing, Search search);

}  // namespace troupe::actors
