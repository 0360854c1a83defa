#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors {

/// On the head's monotonic clock: other clocks are never looked at.
using Time = std::chrono::steady_clock::time_point;
using Duration = std::chrono::nanoseconds;

/// When a node was heard, and how regular that is: the newest 200 gaps.
class Pulses {
 public:
  explicit Pulses(Time now) : last_(now) {}

  void heard(Time now);
  /// For so long the head itself stood still: nobody was silent then.
  void forgive(Duration pause) { last_ += pause; }

  Time last() const { return last_; }
  std::size_t count() const { return gaps_.size(); }
  double mean() const;       // Seconds.
  double deviation() const;  // Likewise.

 private:
  Time last_;
  std::vector<double> gaps_;  // A ring.
  std::size_t next_ = 0;
  double sum_ = 0;
  double squares_ = 0;
};

/// What is known of a node's being alive.
struct Evidence {
  Pulses pulses;
  std::optional<Time> closed;         // Its connection, and it has not come back since.
  std::optional<std::string> exited;  // What whoever started the process says of its end: a proof.
  int witnesses = 0;  // Others who miss it: its daemon, and neighbours who wait for it.
};

struct DetectorLimits {
  Duration heartbeat_every = std::chrono::milliseconds(100);
  Duration silence_floor = std::chrono::milliseconds(300);  // A pause that means nothing.
  Duration reconnect_patience = std::chrono::seconds(1);
  Duration least_deviation = std::chrono::milliseconds(20);
  double suspect = 3;  // phi beyond which a node is suspect.
  int nodes = 1;       // That are watched: the more there are, the rarer each may be misjudged,
  Duration horizon = std::chrono::hours(24 * 30);  // so that in this time not one of them is.
};

/// Whether a node lives. That it is dead is only found here: whoever decides it writes it down
/// before telling anybody.
struct Presence {
  enum class Is : std::uint8_t { alive, suspect, dead };

  Is is = Is::alive;
  double phi = 0;
  std::string reason;
};

/// -log10 of the chance that a node which lives is silent until now (Hayashibara et al. 2004): gaps
/// as normal as the last ones, and a pause that means nothing added to each.
double phi(const Pulses& pulses, Time now, const DetectorLimits& limits);
/// From here on a node is dead: at each look at each node a misjudgement is as rare as this.
double deadly_phi(const DetectorLimits& limits);

Presence judge(const Evidence& evidence, Time now, const DetectorLimits& limits);

/// Looks at all of them. Where more than a third turn silent at once and the last look is longer
/// ago than `look_every` explains, it was the head that stood still: it is forgiven them, not held
/// against them.
std::map<std::string, Presence> judge_all(std::map<std::string, Evidence>& all, Time last_look,
                                          Duration look_every, Time now,
                                          const DetectorLimits& limits);

}  // namespace troupe::actors
