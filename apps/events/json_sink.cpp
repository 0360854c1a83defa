#include "apps/events/json_sink.h"

#include <cstdio>
#include <string>

#include "core/json.h"

namespace troupe::apps {

void JsonSink::event(const Value& event) {
  const std::string line = to_json(event) + "\n";
  std::fwrite(line.data(), 1, line.size(), stdout);
}

void JsonSink::flush() { std::fflush(stdout); }

}  // namespace troupe::apps
