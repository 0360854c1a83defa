#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "schedules/simulate/cost_model.h"

/// Formatting of numbers for people; part of a plan's tables.
namespace troupe::schedules {

/// Prints bytes: "1.50 GiB", "640 B".
std::string show(Bytes bytes);
/// Prints a time: "12.3 ms".
std::string show(Seconds time);
/// Prints a fraction: "11.2 %".
std::string percent(double part);
/// Prints three significant digits: "0.0123", "123", "12300".
std::string significant(double number);

struct Plan;
/// Summarizes a plan: "1f1b, 2 stages, 1 replica, 2 devices, 8 micro-batches a step".
std::string headline(const Plan& plan);

/// A text table with minimal column widths. Columns whose cells begin with a digit align right.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> header) : rows_{std::move(header)} {}

  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  /// Returns the table. If its rows are wider than `columns`, the columns that do not fit follow
  /// in blocks of their own, each of which repeats the first column.
  std::string text(std::size_t columns = std::numeric_limits<std::size_t>::max()) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace troupe::schedules
