#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "apps/events/event_sink.h"
#include "core/value.h"

namespace troupe::apps {

/// Passes every event on to all of its sinks, in their order. Any thread may record.
class Recorder {
 public:
  explicit Recorder(std::vector<std::unique_ptr<EventSink>> sinks) : sinks_(std::move(sinks)) {}
  /// Closes the sinks.
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// Takes a map that begins with `type` and `run`. The reference documentation lists the events.
  void record(const Value& event);

  /// Shows people a line that is not an event: what the data is, where results lie.
  void say(const std::string& text);

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<EventSink>> sinks_;
};

}  // namespace troupe::apps
