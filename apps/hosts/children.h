#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe::apps {

/// A shell's exit code for a command that does not exist.
constexpr int no_such_program = 127;

/// A program to run, and the callbacks for its output and its end.
struct ChildOrder {
  enum class Stream { out, error };

  std::vector<std::string> words;
  std::string input;  // The program's standard input, which other users cannot see.
  // The time limit. Then the program is killed with all its descendants.
  std::chrono::milliseconds patience{60'000};
  /// Receives each line without its end as it comes; very long lines in pieces.
  std::function<void(Stream, const std::string& line)> on_line;
  /// Receives the exit code; 128 + the signal if a signal ended the program.
  std::function<void(int code)> on_end;
};

/// Runs programs concurrently. All callbacks run on the thread that calls wait(), one at a time.
class Children {
 public:
  /// Runs at most `at_once` programs at a time; the remaining ones wait for their turn.
  explicit Children(std::size_t at_once = 64);
  /// Kills the programs that still run.
  ~Children();
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  /// Starts a program. The callbacks may call this too.
  void start(ChildOrder order);
  /// Returns once all programs have ended.
  void wait();

 private:
  struct Child;

  void begin(ChildOrder order);
  void wait_once();

  std::size_t at_once_;
  std::deque<ChildOrder> waiting_;
  std::vector<std::unique_ptr<Child>> running_;
};

}  // namespace troupe::apps
