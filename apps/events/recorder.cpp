#include "apps/events/recorder.h"

#include "apps/events/event.h"

namespace troupe::apps {

Recorder::~Recorder() {
  for (const auto& sink : sinks_) sink->close();
}

void Recorder::record(const Value& event) {
  const Value told = told_at(env_.wall_time(), event);
  const std::lock_guard lock(mutex_);
  for (const auto& sink : sinks_) {
    sink->event(told);
    sink->flush();
  }
}

void Recorder::say(const std::string& text) {
  const std::lock_guard lock(mutex_);
  for (const auto& sink : sinks_) sink->say(text);
}

}  // namespace troupe::apps
