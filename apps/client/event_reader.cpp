#include "apps/client/event_reader.h"

#include <string_view>
#include <utility>

#include "apps/events/event_backlog.h"
#include "core/json.h"
#include "transport/wire/fields.h"

namespace troupe::apps {
namespace {

constexpr JsonLimits limits = {.bytes = most_event_bytes, .depth = 16};

/// The warning that replaces a line which a full disk or a crash left incomplete.
Value unreadable(const std::string& run, std::string_view line) {
  Value value;
  value.set("type", "warn");
  value.set("run", run);
  value.set("text", "skipped an incomplete line of events: " + std::to_string(line.size()) +
                        " bytes that are not an event");
  return value;
}

}  // namespace

Status EventReader::read(const std::function<void(const Value& event)>& tell) {
  for (;;) {
    Value body = Value::Map{};
    body.set("run", run_);
    body.set("from", next_);
    const auto answer = client_.ask("run.events", std::move(body));
    if (!answer) return answer.error();
    const auto page = transport::from_value<EventPage>(*answer, "run.events");
    if (!page) return page.error();
    if (page->lines.empty()) return Done{};
    next_ = page->next;
    // Skips a line that is longer than any event can be, so that memory stays bounded.
    if (begun_.size() < most_event_bytes) begun_ += page->lines;
    if (page->goes_on) continue;
    const std::string lines = std::exchange(begun_, {});
    std::string_view rest = lines;
    while (!rest.empty()) {
      const auto end = rest.find('\n');
      const auto line = rest.substr(0, end);
      const auto event = parse_json(line, limits);
      if (event && event->map())
        tell(*event);
      else if (!line.empty())
        tell(unreadable(run_, line));
      rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
    }
  }
}

Result<std::unique_ptr<EventBell>> EventBell::open(transport::DialOptions options, EventFd& bell) {
  auto events = std::make_unique<EventBell>();
  transport::SubscriberEvents heard;
  heard.event = [&bell, events = events.get()](const transport::Message& event) {
    const Value* state = event.body.find("state");
    if (event.type == "run.state" && state && state->text()) {
      const std::lock_guard lock(events->mutex_);
      if (*state->text() == "stopped")
        events->stopped_.insert(event.run);
      else
        events->stopped_.erase(event.run);
    }
    bell.ring();
  };
  auto subscriber =
      events->own_.network.subscribe(std::move(options), "", std::move(heard), *events->own_.loop);
  if (!subscriber) return subscriber.error();
  events->subscriber_ = std::move(*subscriber);
  return events;
}

bool EventBell::has_stopped(const std::string& run) const {
  const std::lock_guard lock(mutex_);
  return stopped_.contains(run);
}

}  // namespace troupe::apps
