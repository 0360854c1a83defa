#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "apps/events/run_history.h"
#include "core/value.h"

namespace troupe::apps {

/// The events of one run, for a page of a terminal.
class RunScreen {
 public:
  void add(const Value& event);

  /// Returns the page: how far the run is, its loss as a row of blocks, its stages, and its last
  /// events, the newest first. `run` is the run in an answer to `status`. `speed` is in steps per
  /// second; 0 means unknown.
  std::string page(const Value& run, double speed, std::size_t columns) const;

 private:
  RunHistory history_;
  std::optional<double> rate_;
  bool rate_is_of_tokens_ = false;
  std::string choice_;  // The schedule and the precision.
};

/// Draws numbers as a row of at most `columns` blocks of eight heights. A column shows the mean of
/// its numbers.
std::string sparkline(const std::vector<double>& numbers, std::size_t columns);

}  // namespace troupe::apps
