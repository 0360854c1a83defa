#include "apps/events/publisher_sink.h"

#include <utility>

namespace troupe::apps {

void PublisherSink::event(const Value& event) {
  transport::Message message;
  message.type = text_in(event, "type");
  message.run = text_in(event, "run");
  message.body = event;
  // A subscriber that misses an event reads it from the run's file of events.
  (void)publisher_.publish(std::move(message));
}

}  // namespace troupe::apps
