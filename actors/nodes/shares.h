#pragma once

#include <vector>

namespace troupe::actors {

/// The devices of a run, to be shared out among nodes: all that the answer hangs on, so that it can
/// be found before it is wanted.
struct Sharing {
  std::vector<double> work;  // By device.
  std::vector<int> cores;    // By node, most first.
  int most = 1;              // Nodes that get any.

  friend auto operator<=>(const Sharing&, const Sharing&) = default;
};

/// By process.
struct Shares {
  std::vector<int> cores;  // That its node has.
  std::vector<int> cuts;   // Process k has the devices from cuts[k] up to cuts[k + 1].
  double busiest = 0;      // Work for each core of the one that has most of that: as a step takes.
};

enum class Search {
  prompt,    // Some tens of milliseconds, however many nodes there are.
  thorough,  // Seconds, for a hundred that are not alike.
};

/// So that the busiest has least to do for its cores. The same sharing always gives the same
/// shares, each search its own.
Shares share_out(const Sharing& sharing, Search search);

}  // namespace troupe::actors
