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
  int code = 0;            // Where it ended by itself,
  int signal = 0;          // or by which signal.
  std::string last_words;  // The end of what it wrote to its stderr.
};

/// "ended with code 1", "was ended by signal 9 (Killed)".
std::string to_text(const ProcessEnd& end);

struct KeepOptions {
  std::function<std::vector<std::string>()> arguments;  // Of this program; asked at each start.
  /// Variables for it beside our own, "NAME=value"; asked likewise. Other users cannot read them.
  std::function<std::vector<std::string>()> environment = [] { return std::vector<std::string>(); };
  /// Between an end and the next start. One that has lived for a while begins anew. However often
  /// one is killed, it is back soon enough for a run to be made good within two seconds.
  transport::BackoffRules backoff = {std::chrono::milliseconds(50), std::chrono::seconds(1)};
  std::chrono::milliseconds while_lived = std::chrono::seconds(2);
  /// For it to end when it is asked to (signal_of_keeper()); then it is killed.
  std::chrono::milliseconds end_patience = std::chrono::seconds(5);
  /// Hears of each end, also of the last one, on a thread of this object; whether it is started
  /// again. Not asked any more once it shall end.
  std::function<bool(const ProcessEnd&)> ended;
};

/// The process that keeps this one by a KeptProcess; 0 if nobody does.
pid_t keeper_of_this_process();
/// The signal by which a KeptProcess asks its process to end. It is queued: a SIGTERM would be lost
/// if somebody else has just sent one, since two of them that wait become one.
int signal_of_keeper();

/// A process of this program that is there as long as this object: started again where it ends. It
/// never outlives this object, nor this process, however that ends. What it writes to its stderr
/// appears on ours.
class KeptProcess {
 public:
  explicit KeptProcess(KeepOptions options);
  /// Asks it to end, and waits until it has.
  ~KeptProcess();
  KeptProcess(const KeptProcess&) = delete;
  KeptProcess& operator=(const KeptProcess&) = delete;

  /// Begins to ask, and returns at once: where many shall end, they end together.
  void ask_to_end();

 private:
  struct Child;

  void keep();
  Child start();
  ProcessEnd watch(Child child);
  bool shall_end() const;

  KeepOptions options_;
  EventFd bell_;  // It shall end.
  mutable std::mutex mutex_;
  bool shall_end_ = false;
  std::thread thread_;
};

}  // namespace troupe::apps
