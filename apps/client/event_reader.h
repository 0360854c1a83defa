#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "apps/client/client_network.h"
#include "apps/client/head_client.h"
#include "core/result.h"
#include "core/threads/event_fd.h"
#include "core/value.h"
#include "transport/control/publisher.h"

namespace troupe::apps {

/// Reads the events of a run, or of the head itself, from the first one. Delivers each event
/// exactly once.
class EventReader {
 public:
  /// An empty `run` means the events of the head. The client outlives the reader.
  EventReader(HeadClient& client, std::string run) : client_(client), run_(std::move(run)) {}

  /// Skips the events before `place`.
  void begin_at(std::int64_t place) { next_ = place; }
  /// Calls `tell` for each event that the head has now.
  Status read(const std::function<void(const Value& event)>& tell);

 private:
  HeadClient& client_;
  std::string run_;
  std::int64_t next_ = 0;
  // The part of an unfinished line that was read, if a line is longer than a page.
  std::string begun_;
};

/// Rings the bell whenever a head publishes something, so that readers read again. A reader also
/// polls at intervals, since the subscription may lose messages or start late.
class EventBell {
 public:
  static Result<std::unique_ptr<EventBell>> open(transport::DialOptions options, EventFd& bell);

  /// Returns whether the run was reported as stopped. A head that ends stops its runs first, and
  /// then answers no more questions.
  bool has_stopped(const std::string& run) const;

 private:
  mutable std::mutex mutex_;
  std::set<std::string> stopped_;
  ClientNetwork own_;
  // Declared last: its callbacks use the other members.
  std::unique_ptr<transport::Subscriber> subscriber_;
};

}  // namespace troupe::apps
