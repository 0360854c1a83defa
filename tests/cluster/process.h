#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "apps/program.h"
#include "sanitized.h"

namespace troupe::tests {

/// How long a process may take.
constexpr std::chrono::seconds usual_patience(is_sanitized ? 180 : 30);

/// The program as a process of its own, which others talk to. It ends with this object.
class Process {
 public:
  /// `descriptors` is the most files that it may have open (`ulimit -n`); 0: as many as this one.
  Process(const Workplace& here, const std::vector<std::string>& arguments,
          std::size_t descriptors = 0);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// Waits until it has said so, on either stream, or has ended. Gives all that it said so far.
  bool says(const std::string& text, std::chrono::seconds patience = usual_patience);
  /// The same, of what it has not yet been seen to say by this.
  bool says_once_more(const std::string& text, std::chrono::seconds patience = usual_patience);
  /// Listens for so long, or until it has ended.
  void listen(std::chrono::milliseconds time);
  /// All that it has said by now counts as seen.
  void see_all();
  const std::string& said() const { return said_; }

  void send(int signal) const;
  /// Its exit code, 128 + the signal if one ended it; nothing where it does not end.
  std::optional<int> wait(std::chrono::seconds patience = 2 * usual_patience);
  pid_t id() const { return id_; }

 private:
  bool read_more(std::chrono::steady_clock::time_point end);
  /// Where it is found from there on; npos where it does not come.
  std::size_t find(const std::string& text, std::size_t from, std::chrono::seconds patience);

  pid_t id_ = -1;
  int output_ = -1;
  std::string said_;
  std::size_t seen_ = 0;  // Of what was said.
  std::optional<int> code_;
};

}  // namespace troupe::tests
