#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "simulation/clock.h"

namespace troupe::simulation {

/// A node that comes or goes, counted from the beginning.
struct Change {
  enum class What : std::uint8_t { comes, goes };

  Duration at{};
  What what = What::comes;
  std::string node;

  friend bool operator==(const Change&, const Change&) = default;
};
/// In the order of time.
using FailureTrace = std::vector<Change>;

/// Lines of "milliseconds,add,node3" or "milliseconds,remove,node3", as Bamboo keeps what it saw of
/// spot instances, and Oobleck after it. Errors begin with "line: ".
Result<FailureTrace> read_bamboo_trace(std::string_view text);

/// What read_bamboo_trace() reads as it was, in whole milliseconds.
std::string write_bamboo_trace(const FailureTrace& trace);

/// {"metadata": {"gap_seconds": 600}, "data": [4, 3, ...]}: how many instances there were each time
/// somebody looked, as SkyPilot keeps it. Who came last goes first.
Result<FailureTrace> read_skypilot_trace(std::string_view text);

/// By what the text begins with.
Result<FailureTrace> read_trace(std::string_view text);

/// What spot instances were seen to do.
struct SpotStatistics {
  int most = 32;
  double live = 24;       // On average.
  double losses = 14.7;   // In an hour,
  double moments = 6.93;  // at so many moments,
  int most_at_once = 6;   // and at one of them so many at most.
  Duration tick = std::chrono::seconds(60);
};
/// Nodes "node0" and on, drawn by the seed. What happens in a tick happens at one moment of it.
FailureTrace spot_trace(const SpotStatistics& statistics, Duration length, std::uint64_t seed);

/// All nodes are there, and about every so often one of them goes, and is back after a while.
FailureTrace regular_trace(int nodes, Duration every, Duration back_after, Duration length,
                           std::uint64_t seed);

}  // namespace troupe::simulation
