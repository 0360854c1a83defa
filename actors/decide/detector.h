#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors {

/// The head's monotonic clock; no other clock is used.
using Time = std::chrono::steady_clock::time_point;
using Duration = std::chrono::nanoseconds;

/// A node's heartbeats: the last one, and statistics of the latest 200 gaps.
class Pulses {
 public:
  explicit Pulses(Time now) : last_(now) {}

  void heard(Time now);
  /// Ignores a time during which the head itself was suspended.
  void forgive(Duration pause) { last_ += pause; }

  Time last() const { return last_; }
  std::size_t count() const { return gaps_.size(); }
  double mean() const;       // In seconds.
  double deviation() const;  // In seconds.

 private:
  Time last_;
  std::vector<double> gaps_;  // A ring buffer.
  std::size_t next_ = 0;
  double sum_ = 0;
  double squares_ = 0;
};

/// The evidence about whether a node is alive.
struct Evidence {
  Pulses pulses;
  std::optional<Time> closed;         // When its connection was closed, if it has not reconnected.
  std::optional<std::string> exited;  // How its process ended, by its parent: a proof.
  int witnesses = 0;  // Others that miss it: its daemon, and neighbors that wait for it.
};

struct DetectorLimits {
  Duration heartbeat_every = std::chrono::milliseconds(100);
  Duration silence_floor = std::chrono::milliseconds(300);  // A silence that means nothing.
  Duration reconnect_patience = std::chrono::seconds(1);
  Duration least_deviation = std::chrono::milliseconds(20);
  /// The least deviation of a node without heartbeats; 200 of them end its influence. A node begins
  /// on a machine that is often busy with other beginnings, and one gap says little about the next.
  Duration first_deviation = std::chrono::milliseconds(100);
  double suspect = 3;  // The phi above which a node is suspect.
  int nodes = 1;       // Watched nodes: the more there are, the rarer must errors be,
  Duration horizon = std::chrono::hours(24 * 30);  // so that in this time no node is misjudged.
};

/// A judgement about a node. This file only proposes a death; whoever decides it records it before
/// telling anybody.
struct Presence {
  enum class Is : std::uint8_t { alive, suspect, dead };

  Is is = Is::alive;
  double phi = 0;
  std::string reason;
};

/// Returns -log10 of the probability that a living node is silent until now (Hayashibara et al.
/// 2004). It assumes normally distributed gaps, each lengthened by `silence_floor`.
double phi(const Pulses& pulses, Time now, const DetectorLimits& limits);
/// Returns the phi at which a node counts as dead, so that an error within `horizon` is unlikely.
double deadly_phi(const DetectorLimits& limits);

Presence judge(const Evidence& evidence, Time now, const DetectorLimits& limits);

/// Judges all nodes and returns the verdicts in their order. If more than a third are silent at
/// once, and the last look is longer ago than `look_every` explains, then the head was suspended:
/// that time is ignored.
std::vector<Presence> judge_all(const std::vector<Evidence*>& all, Time last_look,
                                Duration look_every, Time now, const DetectorLimits& limits);

}  // namespace troupe::actors
