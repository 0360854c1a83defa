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

bool is_step(const std::string& line) {
  const auto event = parse_json(line);
  const Value* type = event ? event->find("type") : nullptr;
  return type && type->text() && *type->text() == "step";
}

std::vector<double> step_seconds(const std::vector<std::string>& lines) {
  std::vector<double> seconds;
  for (const auto& line : lines) {
    if (is_step(line)) seconds.push_back(parse_json(line)->find("seconds")->number());
  }
  if (!seconds.empty()) seconds.erase(seconds.begin());
  return seconds;
}

}  // namespace troupe::bench
