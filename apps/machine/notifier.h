#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/result.h"
#include "core/threads/event_fd.h"
#include "core/value.h"

namespace troupe::apps {

/// The command that events run, and the events that run it.
struct NotifyOptions {
  std::string command;  // A program and its arguments, separated by blanks. No shell reads it.
  std::string on = "done,failed,stopped";
};

/// A command, as its words, and the kinds of events that run it.
struct Notification {
  std::vector<std::string> words;
  std::set<std::string> kinds;

  static Result<Notification> parse(const NotifyOptions& options);
};

/// Returns the kind of an event that can run a command, as in NotifyOptions::on; empty: none can.
std::string notified_kind(const Value& event);

/// Runs a command for events, with the event as JSON on its stdin. It runs one command at a time,
/// on a thread of its own, and kills it after `limit`. Nobody waits for it: if too many events
/// wait, newer ones are dropped, and the next command gets their number as `dropped`.
class Notifier {
 public:
  static constexpr auto usual_limit = std::chrono::seconds(30);

  /// `say` tells of commands that fail and of dropped events; the notifier's thread calls it.
  Notifier(Notification notification, std::function<void(const std::string&)> say,
           std::chrono::milliseconds limit = usual_limit);
  /// Ends as finish() does.
  ~Notifier();
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;

  /// Takes an event that has its time. Returns at once. Any thread may call it.
  void tell(const Value& event);
  /// Runs the commands of the events that wait, for at most `limit` in all. Later events are
  /// ignored.
  void finish();

 private:
  struct Waiting {
    Value event;
    std::int64_t dropped = 0;  // Events that were dropped before it.
  };
  void run();
  void deliver(const Waiting& waiting);
  std::string run_command(const std::string& input);

  const Notification notification_;
  const std::function<void(const std::string&)> say_;
  const std::chrono::milliseconds limit_;

  std::mutex mutex_;
  std::deque<Waiting> waiting_;
  std::int64_t dropped_ = 0;  // Since the newest event that waits.
  bool ends_ = false;
  std::chrono::steady_clock::time_point end_by_ = std::chrono::steady_clock::time_point::max();
  EventFd bell_;
  std::thread thread_;  // Declared last: it uses the other members.
};

}  // namespace troupe::apps
