#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/env.h"

namespace troupe::apps {

/// How a process of this program is started.
struct ProcessOrder {
  std::vector<std::string> arguments;  // The words after the program's name.
  /// Additional variables, "NAME=value". Other users cannot read them.
  std::vector<std::string> environment;
};

struct ProcessEnd {
  int process = -1;        // The id of the process; -1 if it could not be started.
  int code = 0;            // The exit code, if the process ended by itself.
  int signal = 0;          // The signal that ended the process; 0 if none did.
  std::string last_words;  // The end of the process' stderr.
};

/// Describes the end: "ended with code 1", "was ended by signal 9 (Killed)".
std::string to_text(const ProcessEnd& end);

/// A process that was started. It never outlives this object: the destructor kills it, and from
/// then on nobody hears of its end.
class ChildProcess {
 public:
  enum class Signal : std::uint8_t {
    end,   // Asks the process to end in order.
    kill,  // Ends it at once.
  };

  ChildProcess() = default;
  virtual ~ChildProcess() = default;
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// Does nothing if the process has ended. Any thread may call it.
  virtual void signal(Signal signal) = 0;
};

/// Starts processes of this program. Main functions make what starts real ones
/// (apps/real/real_processes.h), and a simulator starts simulated ones. It outlives the processes.
class Processes {
 public:
  using Ended = std::function<void(const ProcessEnd&)>;

  virtual ~Processes() = default;

  /// Starts a process and returns at once. Calls `ended` once, as a task of the loop, when the
  /// process has ended or could not be started. The loop outlives the process, and its tasks alone
  /// may destroy it, `ended` too. Any thread may call it.
  virtual std::unique_ptr<ChildProcess> start(ProcessOrder order, Loop& loop, Ended ended) = 0;
};

}  // namespace troupe::apps
