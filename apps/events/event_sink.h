#pragma once

#include <string>

#include "core/value.h"

namespace troupe::apps {

/// A destination of events: a file, a terminal, the subscribers of a head. A recorder owns its
/// sinks and makes one call at a time, so that a sink needs no lock. A sink must not call its
/// recorder. No call reports a failure: a sink that cannot write handles that itself, and the other
/// sinks receive every event all the same.
class EventSink {
 public:
  virtual ~EventSink() = default;

  /// Takes an event, which has its time. Events come in the order in which they were recorded.
  virtual void event(const Value& event) = 0;
  /// Shows a line that is not an event. Sinks that no person reads ignore it.
  virtual void say(const std::string& /*text*/) {}
  /// Hands on what the sink has buffered. Comes after each event.
  virtual void flush() {}
  /// Ends the output. The last call, and it comes once.
  virtual void close() {}
};

}  // namespace troupe::apps
