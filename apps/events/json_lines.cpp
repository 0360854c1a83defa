#include "apps/events/json_lines.h"

#include <string_view>

#include "core/json.h"

namespace troupe::apps {

Status each_json_line(storage::Files& files, const std::string& path,
                      const std::function<Status(int line, const Value& value)>& take) {
  const auto bytes = files.read(path);
  if (!bytes) return bytes.error();
  std::string_view rest = bytes->text();
  for (int line = 1; !rest.empty(); ++line) {
    const auto end = rest.find('\n');
    const auto value = parse_json(rest.substr(0, end));
    rest = end == rest.npos ? std::string_view() : rest.substr(end + 1);
    const Status taken = value ? take(line, *value) : value.error();
    if (!taken) return Error{path + ":" + std::to_string(line) + ": " + taken.error().text};
  }
  return Done{};
}

}  // namespace troupe::apps
