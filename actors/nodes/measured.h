#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "actors/decide/detector.h"
#include "core/result.h"
#include "transport/wire/fields.h"

/// Nodes measure themselves and their links for plans.
namespace troupe::actors {

/// The speed of a node's processor: matrix products on all cores that the node uses.
struct Speed {
  double plain = 0;        // Operations per second in fp32,
  double best = 0;         // and in the precision of the inventory.
  double seconds_ago = 0;  // When it was measured, before the message that has it.

  static constexpr std::int64_t least_rate = 1'000'000;
  static constexpr std::int64_t most_rate = 10'000'000'000'000'000;
  static constexpr std::int64_t most_seconds = 1'000'000'000;

  static constexpr auto fields() {
    return std::tuple(
        transport::required("plain", &Speed::plain).at_least(least_rate).at_most(most_rate),
        transport::required("best", &Speed::best).at_least(least_rate).at_most(most_rate),
        transport::optional("seconds_ago", &Speed::seconds_ago).at_least(0).at_most(most_seconds));
  }
};

/// A path to another process, as the traffic of an attempt has measured it.
struct Path {
  int process = 0;                              // The number in the placement.
  double latency = 0;                           // Seconds, in one direction.
  std::optional<double> bytes_per_second = {};  // Known once enough bytes were sent.

  static constexpr std::int64_t most_latency = 60;
  static constexpr std::int64_t most_rate = 1'000'000'000'000;

  static constexpr auto fields() {
    return std::tuple(
        transport::required("process", &Path::process).at_least(0),
        transport::required("latency", &Path::latency).at_least(0).at_most(most_latency),
        transport::optional("bytes_per_second", &Path::bytes_per_second)
            .at_least(1)
            .at_most(most_rate));
  }
};

/// Node to head: the paths to other processes of an attempt.
struct Paths {
  static constexpr std::string_view type = "paths";

  std::vector<Path> paths;

  static constexpr auto fields() { return std::tuple(transport::required("paths", &Paths::paths)); }
};

/// Checks that each path leads to another process of the attempt, and that none is there twice.
Status may(const Paths& paths, int from, int processes);

/// The best figures of a link in a period.
struct LinkFigures {
  double latency = 0;  // Seconds, in one direction.
  std::optional<double> bytes_per_second = {};
};

/// A link from a node to another host, as its traffic was measured.
struct MeasuredLink {
  std::string host;
  LinkFigures best = {};  // The best of the present period and the one before.
  Time told = {};         // The time of the newest measurement.

  // Used by add_link().
  LinkFigures in_period = {};
  std::optional<LinkFigures> before = {};  // The best figures of the period before.
  Time began = {};                         // The begin of the present period.
};

/// Figures of links that are older say nothing about the present.
inline constexpr auto links_hold = std::chrono::hours(1);
/// The links of a node that the head remembers. It ignores links to more hosts.
inline constexpr std::size_t most_links = 64;

/// Adds a measurement to those of a node, and drops old ones. Queues and small messages make a link
/// look slower than it is, so the best figures of the last 10 to 20 minutes count.
void add_link(std::vector<MeasuredLink>& links, const std::string& host, const LinkFigures& figures,
              Time now);
/// Drops figures that are too old.
void drop_old(std::vector<MeasuredLink>& links, Time now);

}  // namespace troupe::actors
