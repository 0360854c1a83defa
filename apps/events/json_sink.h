#pragma once

#include "apps/events/event_sink.h"

namespace troupe::apps {

/// Prints each event to stdout: one JSON object a line.
class JsonSink final : public EventSink {
 public:
  void event(const Value& event) override;
  void flush() override;
};

}  // namespace troupe::apps
