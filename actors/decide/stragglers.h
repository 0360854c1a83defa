#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/decide/running_median.h"
#include "schedules/schedule.h"

namespace troupe::actors {

/// An action of a device. The times are those of a clock of the device's process. Clocks of
/// different processes have nothing to do with each other.
struct TimedAction {
  schedules::Action action;
  std::chrono::nanoseconds start{};
  std::chrono::nanoseconds end{};
  bool is_held_up = false;  // Its last input did not come from another stage's pass.
};

/// A training round that all devices have played.
struct TimedRound {
  std::int64_t first_step = 0;  // Steps done before it.
  int steps = 1;
  int micro_batches_in_step = 1;  // For one replica.
  std::chrono::nanoseconds took{};
  std::vector<std::vector<TimedAction>> devices;  // Indexed by replica, then device.
};

/// A device or a link that slows the run down, or no longer does.
struct Straggler {
  enum class Cause : std::uint8_t {
    computing,
    link,          // Tensors from `peer` to `device` arrive late.
    link_two_way,  // Tensors between both arrive late; which direction is slow is unknown.
  };
  enum class Than : std::uint8_t { before, others };
  enum class Now : std::uint8_t {
    slow,
    usual,    // It is as fast as usual again.
    unknown,  // It is not measured any more.
  };

  std::size_t device = 0;  // Counted over all replicas.
  Cause cause = Cause::computing;
  std::size_t peer = 0;      // The other end of a link.
  Than than = Than::before;  // Slower than earlier in the attempt, or than equal devices.
  double factor = 1;         // How many times longer it takes.
  /// The longer time as a part of a step's time. For computing it is the most that a step can lose:
  /// a device that is idle for a part of the step loses less. For a link it is the growth of one
  /// round trip: a step with many round trips in a row loses more.
  double share = 0;
  std::int64_t since = 0;  // The first slow step, counted from 1.
  Now now = Now::slow;     // Unless it is slow, `factor` and `share` are old.
};

struct StragglerLimits {
  int warm_up = 3;            // First steps of an attempt that are ignored.
  double slow = 1.5;          // A device that takes this many times longer is slow,
  double slow_link = 2;       // and so is a link,
  double fast = 1.3;          // until it takes less than this many times longer.
  double least_share = 0.05;  // The least share of a step's time that a straggler costs.
  /// A busy machine delays the thread of a receiver by this much: no reason to name a link.
  std::chrono::nanoseconds least_late = std::chrono::milliseconds(2);
  double spreads = 4.5;  // A growth by fewer times the usual spread is noise.
  int in_a_row = 3;      // Steps in a row that must agree.
  /// Noise of a busy machine comes in bursts. What takes less than `plain` times longer, or costs
  /// less than `plain_share` of a step, is named only if it has lasted, and anything only if it has
  /// lasted longer than such a burst.
  double plain = 1.7;
  double plain_share = 0.15;
  std::chrono::nanoseconds burst = std::chrono::milliseconds(25);
  std::chrono::nanoseconds lasted = std::chrono::seconds(1);
  int unmeasured = 16;  // Steps without a measurement after which a link is unknown.
  /// A device that was idle for longer has waited for its input. A shorter gap is overhead.
  std::chrono::nanoseconds idle = std::chrono::microseconds(100);
};

/// Finds the devices and links that slow down an attempt of a run. It knows no clock: the same
/// rounds give the same answers.
///
/// A device computes slowly if the medians of its passes are longer than those of other devices for
/// the same stage, or longer than earlier in the attempt. A slowdown of all devices names nobody.
///
/// The time of a link cannot be measured in one direction, since clocks differ. But a receiver that
/// was idle starts when its input arrives. So `start at the receiver - end at the sender` is the
/// time of the link plus the difference of the clocks, and in the sum over both directions that
/// difference cancels: the round trip. A link is slow if its round trip is longer than earlier in
/// the attempt while both devices compute as fast as before. The direction is known if one
/// direction has grown by as much as the round trip. If clocks have moved, the directions
/// contradict each other, and none is named.
class Stragglers {
 public:
  explicit Stragglers(StragglerLimits limits = {}) : limits_(limits) {}

  /// Forgets everything. `nodes`: the node of each device, by replica, then device. Links within a
  /// node are not watched.
  void attempt_begins(std::vector<std::string> nodes, int replicas);
  /// Returns what has changed. Every device must be in the round.
  std::vector<Straggler> add(const TimedRound& round);
  /// Returns the present stragglers.
  std::vector<Straggler> all() const;

 private:
  using Class = std::pair<schedules::Kind, int>;  // A kind of pass, and the stage.

  /// A count of steps in a row that agree, and the straggler that they have shown.
  struct Finding {
    int slow_steps = 0;
    double slow_seconds = 0;  // The time of these steps.
    int fast_steps = 0;
    std::optional<Straggler> named;

    bool is_calm() const { return slow_steps == 0 && !named; }
  };
  struct Passes {
    RunningMedian time;
    int count = 0;  // In a step.
  };
  struct Device {
    std::map<Class, Passes> passes;
    RunningMedian busy;                            // The time of all passes in a step.
    std::optional<std::chrono::nanoseconds> free;  // When the last action ended.
    double slower = 1;  // How many times longer the passes take than before.
    Finding finding;
  };
  struct Link {
    RunningMedian there, back, both;
    int unmeasured = 0;  // Steps since it was measured.
    Finding finding;
  };
  using Ends = std::pair<std::size_t, std::size_t>;  // The first is less than the second.

  /// A pass, its device, and its time by that device's clock.
  struct Ran {
    std::size_t device = 0;
    double start = 0;
    double end = 0;
    bool has_waited = false;
  };
  struct Step;
  struct Judgement;

  std::vector<Step> split(const TimedRound& round);
  void measure(const Step& step);
  void compare_devices();
  void measure_links(const Step& step);
  std::optional<Judgement> judge(std::size_t device) const;
  std::optional<Judgement> judge(const Link& link) const;
  std::optional<Judgement> compare_with_others(const Device& about) const;
  double least_factor(double slow, double spread) const;
  double share_of(double longer) const;
  void settle_links(std::int64_t step, std::vector<Straggler>& changes);
  void settle(Finding& finding, const std::optional<Judgement>& judged, const Straggler& told,
              double slow, std::int64_t step, std::vector<Straggler>& changes);
  Straggler link_straggler(const Ends& ends, const Link& link) const;

  StragglerLimits limits_;
  std::vector<std::string> nodes_;
  std::size_t in_replica_ = 1;
  int ignored_ = 0;
  LastNumbers step_{RunningMedian::window};  // The times of steps.
  double newest_step_ = 0;
  std::vector<Device> devices_;
  std::map<Class, std::vector<double>> times_;  // The times of all devices, sorted.
  std::vector<double> slowdowns_;               // The slowdowns of all devices, sorted.
  std::map<Ends, Link> links_;
};

}  // namespace troupe::actors
