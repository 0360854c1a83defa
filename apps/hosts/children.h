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

/// A shell's exit code for a command that it does not find.
constexpr int no_such_program = 127;

/// A program to run, and who hears of it.
struct ChildOrder {
  enum class Stream { out, error };

  std::vector<std::string> words;
  std::string input;  // What it reads on its standard input, which other users cannot see.
  std::chrono::milliseconds patience{60'000};  // Then it is killed, with what it has started.
  /// Each line without its end, as it comes; very long ones in pieces.
  std::function<void(Stream, const std::string& line)> on_line;
  /// Its exit code; 128 + the signal where one ended it.
  std::function<void(int code)> on_end;
};

/// Programs that run at the same time. All is told on the calling thread, one
/// thing at a time.
class Children {
 public:
  /// Of more than `at_once` the later ones wait for their turn.
  explicit Children(std::size_t at_once = 64);
  /// Kills those that still run.
  ~Children();
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  /// On_line and on_end may start others.
  void start(ChildOrder order);
  /// Returns once all have ended.
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
