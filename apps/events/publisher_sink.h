#pragma once

#include "apps/events/event_sink.h"
#include "transport/control/publisher.h"

namespace troupe::apps {

/// Publishes each event to the subscribers of a head. It has no state: unlike other sinks it may be
/// called from several threads.
class PublisherSink final : public EventSink {
 public:
  /// `publisher` outlives the sink.
  explicit PublisherSink(transport::Publisher& publisher) : publisher_(publisher) {}

  void event(const Value& event) override;

 private:
  transport::Publisher& publisher_;
};

}  // namespace troupe::apps
