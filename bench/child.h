#pragma once

#include <sys/types.h>

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
  std::string folder = ".";                                      // Where it runs.
};

/// A program that runs beside us, and is killed with this object. It writes to our streams.
class Background {
 public:
  explicit Background(const ChildOrder& order);
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  pid_t id() const { return id_; }
  /// Asks it to end, and waits until it has.
  void end();

 private:
  pid_t id_ = -1;
};

/// Those that a process has started and that live.
std::vector<pid_t> children_of(pid_t process);

/// Runs a program to its end. Nothing where it could not be started.
std::optional<ChildResult> run_child(const ChildOrder& order);

}  // namespace troupe::bench
