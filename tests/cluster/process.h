#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "apps/program.h"
#include "sanitized.h"

namespace troupe::tests {

/// The usual time limit of a process.
constexpr std::chrono::seconds usual_patience(is_sanitized ? 180 : 30);

/// The program as a process of its own. The destructor ends it.
class Process {
 public:
  /// `descriptors` limits the number of open files (`ulimit -n`); 0 keeps this process' limit.
  Process(const Workplace& here, const std::vector<std::string>& arguments,
          std::size_t descriptors = 0);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// Waits until the process has written `text` on either stream, or has ended. Searches all output
  /// so far.
  bool says(const std::string& text, std::chrono::seconds patience = usual_patience);
  /// Like says(), but searches only output that no call has matched yet.
  bool says_once_more(const std::string& text, std::chrono::seconds patience = usual_patience);
  /// Reads output for `time`, or until the process ends.
  void listen(std::chrono::milliseconds time);
  /// Marks all output so far as seen.
  void see_all();
  const std::string& said() const { return said_; }

  void send(int signal) const;
  /// Returns the exit code; 128 + the signal if a signal ended the process; nothing if it does not
  /// end.
  std::optional<int> wait(std::chrono::seconds patience = 2 * usual_patience);
  pid_t id() const { return id_; }

 private:
  bool read_more(std::chrono::steady_clock::time_point end);
  /// Returns the position of `text` after `from`; npos if it does not come.
  std::size_t find(const std::string& text, std::size_t from, std::chrono::seconds patience);

  pid_t id_ = -1;
  int output_ = -1;
  std::string said_;
  std::size_t seen_ = 0;  // The position up to which output was seen.
  std::optional<int> code_;
};

}  // namespace troupe::tests
