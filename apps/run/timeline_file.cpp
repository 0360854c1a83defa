#include "apps/run/timeline_file.h"

#include "apps/events/json_lines.h"
#include "core/json.h"
#include "schedules/text.h"

namespace troupe::apps {
namespace {

Result<schedules::Span> span_of(const Value& value) {
  const Value* device = value.find("device");
  const Value* action = value.find("action");
  const Value* start = value.find("start");
  const Value* end = value.find("end");
  if (!device || !device->integer() || !action || !action->text() || !start ||
      !start->is_number() || !end || !end->is_number())
    return Error{"expected device, action, start and end"};
  const auto lane = schedules::parse_lane(*action->text());
  if (!lane) return lane.error();
  if (lane->size() != 1) return Error{"expected one action, found \"" + *action->text() + "\""};
  return schedules::Span{.device = static_cast<int>(*device->integer()),
                         .track = schedules::Track::compute,
                         .action = (*lane)[0],
                         .start = start->number(),
                         .end = end->number()};
}

Status take_head(const Value& value, schedules::Timeline& timeline) {
  const Value* run = value.find("run");
  const Value* devices = value.find("devices");
  if (!run || !run->text() || !devices || !devices->integer())
    return Error{"expected run and devices"};
  timeline.name = *run->text();
  timeline.devices = static_cast<int>(*devices->integer());
  return Done{};
}

}  // namespace

Status write_timeline(storage::Files& files, const std::string& path,
                      const schedules::Timeline& timeline) {
  Value head;
  head.set("run", timeline.name);
  head.set("devices", timeline.devices);
  std::string text = to_json(head) + "\n";
  for (const auto& span : timeline.spans) {
    Value line;
    line.set("device", span.device);
    line.set("action", to_string(span.action));
    line.set("start", span.start);
    line.set("end", span.end);
    text += to_json(line) + "\n";
  }
  return storage::replace_file(files, path, text);
}

Result<schedules::Timeline> read_timeline(storage::Files& files, const std::string& path) {
  schedules::Timeline timeline;
  const auto read = each_json_line(files, path, [&](int line, const Value& value) -> Status {
    if (line == 1) return take_head(value, timeline);
    auto span = span_of(value);
    if (!span) return span.error();
    if (span->device < 0 || span->device >= timeline.devices)
      return Error{"there is no device " + std::to_string(span->device)};
    timeline.spans.push_back(*span);
    return Done{};
  });
  if (!read) return read.error();
  if (timeline.devices == 0) return Error{path + ": it is empty"};
  return timeline;
}

}  // namespace troupe::apps
