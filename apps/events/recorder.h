#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "apps/events/event_sink.h"
#include "core/env.h"
#include "core/value.h"

namespace troupe::apps {

/// Passes every event on to all of its sinks, in their order. Any thread may record.
class Recorder {
 public:
  /// The environment gives each event its time, and outlives the recorder.
  Recorder(Env& env, std::vector<std::unique_ptr<EventSink>> sinks)
      : env_(env), sinks_(std::move(sinks)) {}
  /// Closes the sinks.
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// Takes a map that begins with `type` and `run`. The reference documentation lists the events.
  void record(const Value& event);

  /// Shows people a line that is not an event: what the data is, where results lie.
  void say(const std::string& text);

 private:
  Env& env_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<EventSink>> sinks_;
};

}  // namespace troupe::apps
