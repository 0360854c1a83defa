#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "simulation/clock.h"

namespace troupe::simulation {

/// The arrival or loss of a node, with the time since the beginning.
struct Change {
  enum class What : std::uint8_t { comes, goes };

  Duration at{};
  What what = What::comes;
  std::string node;

  friend bool operator==(const Change&, const Change&) = default;
};
/// A list of changes in order of time.
using FailureTrace = std::vector<Change>;

/// Reads lines of "milliseconds,add,node3" or "milliseconds,remove,node3", the format of Bamboo and
/// Oobleck for observed spot instances. Errors begin with "line: ".
Result<FailureTrace> read_bamboo_trace(std::string_view text);

/// Writes the format of read_bamboo_trace(), in whole milliseconds.
std::string write_bamboo_trace(const FailureTrace& trace);

/// Reads SkyPilot's format, {"metadata": {"gap_seconds": 600}, "data": [4, 3, ...]}: the number of
/// instances at each observation. The last instance to come is the first to go.
Result<FailureTrace> read_skypilot_trace(std::string_view text);

/// Reads either format; chooses by the first character of the text.
Result<FailureTrace> read_trace(std::string_view text);

/// Observed statistics of spot instances.
struct SpotStatistics {
  int most = 32;
  double live = 24;       // On average.
  double losses = 14.7;   // Losses per hour.
  double moments = 6.93;  // Moments per hour at which nodes are lost.
  int most_at_once = 6;   // Limit of losses at one moment.
  Duration tick = std::chrono::seconds(60);
};
/// Draws a trace of nodes "node0" and on from the seed. Changes of one tick happen at one moment.
FailureTrace spot_trace(const SpotStatistics& statistics, Duration length, std::uint64_t seed);

/// Draws a trace: all nodes start; about every `every` one goes and returns after `back_after`.
FailureTrace regular_trace(int nodes, Duration every, Duration back_after, Duration length,
                           std::uint64_t seed);

}  // namespace troupe::simulation
