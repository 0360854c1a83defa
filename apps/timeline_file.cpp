#include "apps/timeline_file.h"

#include <string_view>

#include "core/json.h"
#include "schedules/text.h"

namespace troupe::apps {
namespace {

Error bad_line(const std::string& path, int line, const std::string& what) {
  return {path + ":" + std::to_string(line) + ": " + what};
}

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
  const auto bytes = files.read(path);
  if (!bytes) return bytes.error();
  schedules::Timeline timeline;
  std::string_view rest = bytes->text();
  for (int line = 1; !rest.empty(); ++line) {
    const auto end = rest.find('\n');
    const auto value = parse_json(std::string(rest.substr(0, end)));
    rest = end == rest.npos ? std::string_view() : rest.substr(end + 1);
    if (!value) return bad_line(path, line, value.error().text);
    if (line == 1) {
      const Value* run = value->find("run");
      const Value* devices = value->find("devices");
      if (!run || !run->text() || !devices || !devices->integer())
        return bad_line(path, line, "expected run and devices");
      timeline.name = *run->text();
      timeline.devices = static_cast<int>(*devices->integer());
      continue;
    }
    auto span = span_of(*value);
    if (!span) return bad_line(path, line, span.error().text);
    if (span->device < 0 || span->device >= timeline.devices)
      return bad_line(path, line, "there is no device " + std::to_string(span->device));
    timeline.spans.push_back(*span);
  }
  if (timeline.devices == 0) return Error{path + ": it is empty"};
  return timeline;
}

}  // namespace troupe::apps
