#include "bench/figures.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "core/json.h"

namespace troupe::bench {

double median(std::vector<double> numbers) {
  std::ranges::sort(numbers);
  return numbers.empty() ? 0 : numbers[numbers.size() / 2];
}

void print(std::string& to, const char* format, ...) {
  char text[512];
  va_list values;
  va_start(values, format);
  std::vsnprintf(text, sizeof text, format, values);
  va_end(values);
  to += text;
}

std::vector<double> step_seconds(const std::vector<std::string>& lines) {
  std::vector<double> seconds;
  for (const auto& line : lines) {
    const auto event = parse_json(line);
    if (!event) continue;
    const Value* type = event->find("type");
    if (type && type->text() && *type->text() == "step")
      seconds.push_back(event->find("seconds")->number());
  }
  if (!seconds.empty()) seconds.erase(seconds.begin());
  return seconds;
}

}  // namespace troupe::bench
