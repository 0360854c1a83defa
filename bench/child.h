#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::bench {

/// The output and the resources of a finished program.
struct ChildResult {
  std::vector<std::string> lines;  // Lines of standard output.
  std::vector<double> arrivals;    // The seconds from the start to the arrival of each line.
  double peak_mib = 0;             // Its peak resident memory.
  int exit_status = 0;
};

struct ChildOrder {
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> environment = {};  // Added to ours.
  int cores = 1;             // It runs on cores [0, cores).
  std::string folder = ".";  // Its working directory.
  std::string errors = {};   // A file for its standard error; empty: ours.
};

/// A program that runs in the background and shares our standard streams. The destructor kills it.
class Background {
 public:
  explicit Background(const ChildOrder& order);
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  pid_t id() const { return id_; }
  /// Terminates the program (SIGTERM) and waits for its end.
  void end();

 private:
  pid_t id_ = -1;
};

/// Returns the living children of a process.
std::vector<pid_t> children_of(pid_t process);

/// Runs a program to its end. Returns nothing if it could not be started.
std::optional<ChildResult> run_child(const ChildOrder& order);

}  // namespace troupe::bench
