#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/processes.h"
#include "core/env.h"
#include "transport/control/backoff.h"

namespace troupe::apps {

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
  /// How long the process may take to end after it was asked to. Then it is killed.
  std::chrono::milliseconds end_patience = std::chrono::seconds(5);
  /// Called for each end, including the last, on the loop of this object. Returns whether to
  /// restart the process; the result is ignored once end() was called.
  std::function<bool(const ProcessEnd&)> ended;
};

/// Keeps one process of this program running, on a loop of its own, and restarts it if it ends. The
/// process never outlives this object.
class KeptProcess {
 public:
  /// The environment and the processes outlive it.
  KeptProcess(Env& env, Processes& processes, KeepOptions options);
  /// Kills the process if it has not ended.
  ~KeptProcess();
  KeptProcess(const KeptProcess&) = delete;
  KeptProcess& operator=(const KeptProcess&) = delete;

  /// Asks the process to end. Calls `then`, on the loop, once it has ended and will not be
  /// restarted. Any thread may call it, also several times.
  void end(std::function<void()> then);

 private:
  void start();
  void ended(const ProcessEnd& end);
  void ask_to_end();
  void stop_timer();
  void tell_ended();

  Env& env_;
  Processes& processes_;
  const KeepOptions options_;
  const std::unique_ptr<Loop> loop_;

  // Used by the loop.
  transport::Backoff backoff_;
  std::unique_ptr<ChildProcess> process_;  // Null while none runs.
  Env::Time begun_;                        // When it was started.
  std::optional<Loop::Timer> timer_;       // The next start, or the patience with the last end.
  bool shall_end_ = false;
  std::vector<std::function<void()>> when_ended_;
};

/// Asks all processes to end at the same time, and waits until they have. For main functions.
void end_and_wait(const std::vector<std::unique_ptr<KeptProcess>>& processes);

}  // namespace troupe::apps
