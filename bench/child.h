#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::bench {

/// What a program printed, and what it took.
struct ChildResult {
  std::vector<std::string> lines;  // Of the standard output.
  double peak_mib = 0;             // The most memory that it had.
  int exit_status = 0;
};

struct ChildOrder {
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> environment;  // Beside our own.
  int cores = 1;                                                 // Runs on cores [0, cores).
};

/// Runs a program to its end. Nothing where it could not be started.
std::optional<ChildResult> run_child(const ChildOrder& order);

}  // namespace troupe::bench
