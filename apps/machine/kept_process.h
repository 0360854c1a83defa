#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/threads/event_fd.h"
#include "transport/control/backoff.h"

namespace troupe::apps {

struct ProcessEnd {
  pid_t process = -1;
  int code = 0;            // The exit code, if the process ended by itself.
  int signal = 0;          // The signal that ended the process; 0 if none did.
  std::string last_words;  // The end of the process' stderr.
};

/// Describes the end: "ended with code 1", "was ended by signal 9 (Killed)".
std::string to_text(const ProcessEnd& end);

struct KeepOptions {
  // Arguments for this program; asked for at each start.
  std::function<std::vector<std::string>()> arguments;
  /// Additional variables, "NAME=value"; asked for at each start. Other users cannot read them.
  std::function<std::vector<std::string>()> environment = [] { return std::vector<std::string>(); };
  /// The delay between an end and the next start. It is reset once a process has lived for
  /// `while_lived`. Even after many kills it is short enough for a run to recover within two
  /// seconds.
  transport::BackoffRules backoff = {std::chrono::milliseconds(50), std::chrono::seconds(1)};
  std::chrono::milliseconds while_lived = std::chrono::seconds(2);
  /// How long the process may take to end after signal_of_keeper(). Then it is killed.
  std::chrono::milliseconds end_patience = std::chrono::seconds(5);
  /// Called for each end, including the last, on a thread of this object. Returns whether to
  /// restart the process; the result is ignored once ask_to_end() was called.
  std::function<bool(const ProcessEnd&)> ended;
};

/// Returns the process that keeps this one by a KeptProcess; 0 if none does.
pid_t keeper_of_this_process();
/// Returns the signal by which a KeptProcess asks its process to end. The signal is queued, while
/// two pending SIGTERMs would merge into one.
int signal_of_keeper();

/// Keeps one process of this program running and restarts it if it ends. The process never outlives
/// this object or the parent process, whatever ends them. Its stderr is copied to the parent's
/// stderr.
class KeptProcess {
 public:
  explicit KeptProcess(KeepOptions options);
  /// Asks the process to end, and waits until it has.
  ~KeptProcess();
  KeptProcess(const KeptProcess&) = delete;
  KeptProcess& operator=(const KeptProcess&) = delete;

  /// Asks the process to end and returns at once, so that several can end at the same time.
  void ask_to_end();

 private:
  struct Child;

  void keep();
  Child start();
  ProcessEnd watch(Child child);
  bool shall_end() const;

  KeepOptions options_;
  EventFd bell_;  // Rung when the process shall end.
  mutable std::mutex mutex_;
  bool shall_end_ = false;
  std::thread thread_;
};

}  // namespace troupe::apps
