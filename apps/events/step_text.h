#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <string>

#include "core/value.h"

namespace troupe::apps {

/// Makes a line for a person from the events of a run's steps: the newest step with the rate and
/// the time left at the pace of the last steps. What is not known is absent.
class StepText {
 public:
  /// `total_steps` is 0 if it is unknown.
  explicit StepText(std::int64_t total_steps) : total_steps_(total_steps) {}

  /// Takes the next event `step`. If the run went back, the steps before no longer count.
  void add(const Value& step);
  /// Forgets the pace, since the run stands still.
  void stand_still();
  /// Returns the newest step on one line of at most `columns`. The parts that matter least stand at
  /// the end and go first.
  std::string line(std::size_t columns = std::numeric_limits<std::size_t>::max()) const;

 private:
  struct Done {
    std::int64_t step;
    double told;     // When, in seconds since 1970.
    double seconds;  // How long the step took.
  };

  /// Returns tokens or samples per second, if the last steps took long enough to tell.
  std::optional<double> rate() const;
  std::optional<double> seconds_left() const;

  std::int64_t total_steps_;
  Value newest_;
  std::deque<Done> done_;      // The last minute's steps.
  std::size_t recent_ = 0;     // The steps at its end that the rate is measured over,
  double recent_seconds_ = 0;  // and how long they took.
};

}  // namespace troupe::apps
