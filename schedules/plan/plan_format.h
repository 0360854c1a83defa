#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "schedules/simulate/cost_model.h"

/// Numbers as people read them; part of the tables of a plan.
namespace troupe::schedules {

/// "1.50 GiB", "640 B"
std::string show(Bytes bytes);
/// "12.3 ms"
std::string show(Seconds time);
/// "11.2 %"
std::string percent(double part);
/// Three digits: "0.0123", "123", "12300".
std::string significant(double number);

struct Plan;
/// "1f1b, 2 stages, 1 replica, 2 devices, 8 micro-batches a step"
std::string headline(const Plan& plan);

/// Columns as wide as they must be; those of numbers, which begin with a digit, stand to the right.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> header) : rows_{std::move(header)} {}

  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace troupe::schedules
