#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "apps/client/head_client.h"
#include "core/result.h"
#include "core/threads/event_fd.h"
#include "core/value.h"
#include "transport/control/publisher.h"

namespace troupe::apps {

/// Reads the events of a run, or those of the head itself, from the first one on: none is missed,
/// and none comes twice.
class EventReader {
 public:
  /// `run` may be empty: what is of no run. The client outlives it.
  EventReader(HeadClient& client, std::string run) : client_(client), run_(std::move(run)) {}

  /// Passes over what came before that place in the events.
  void begin_at(std::int64_t place) { next_ = place; }
  /// Tells all that there is now.
  Status read(const std::function<void(const Value& event)>& tell);

 private:
  HeadClient& client_;
  std::string run_;
  std::int64_t next_ = 0;
  std::string begun_;  // A line that is longer than a page, so far.
};

/// Rings whenever a head publishes something: then it is time to read. Who cannot hear it, or not
/// yet, looks after a while by himself.
class EventBell {
 public:
  static Result<std::unique_ptr<EventBell>> open(transport::DialOptions options, EventFd& bell);

  /// Whether a run was heard to stop: a head that ends stops its runs, and answers nobody any more.
  bool has_stopped(const std::string& run) const;

 private:
  mutable std::mutex mutex_;
  std::set<std::string> stopped_;
  std::unique_ptr<transport::Subscriber> subscriber_;
};

}  // namespace troupe::apps
