#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "apps/events/run_history.h"
#include "apps/events/terminal_width.h"
#include "core/value.h"

namespace troupe::apps {

/// The events of one run, for a page of a terminal.
class RunScreen {
 public:
  void add(const Value& event);

  /// Returns the page: how far the run is, its loss as a row of blocks, its stages, and its last
  /// events, the newest first. `run` is the run in an answer to `status`. `speed` is in steps per
  /// second; 0 means unknown.
  std::string page(const Value& run, double speed, const TextForm& form) const;

 private:
  void add_busy(const Value::List& shares);
  std::string devices_text(std::size_t columns) const;

  RunHistory history_;
  std::optional<double> rate_;
  bool rate_is_of_tokens_ = false;
  std::string choice_;  // The schedule and the precision.
  /// The latest shares of a step in which each device computed, the oldest first; in per cent.
  std::vector<std::deque<double>> busy_;
};

/// Draws numbers as a row of at most `columns` blocks of eight heights. A column shows the mean of
/// its numbers. The lowest block means the least number, the highest one the greatest.
std::string sparkline(const std::vector<double>& numbers, std::size_t columns);
/// Draws shares in per cent as a row of blocks, one for each: the highest one means 100 %.
std::string share_line(const std::deque<double>& shares);

}  // namespace troupe::apps
