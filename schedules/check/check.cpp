#include "schedules/check/check.h"

#include <algorithm>

#include "schedules/check/rules.h"

namespace troupe::schedules {

std::string to_string(Rule rule) {
  switch (rule) {
    case Rule::placement:
      return "V1 placement";
    case Rule::completeness:
      return "V2 completeness";
    case Rule::local_order:
      return "V3 local order";
    case Rule::acyclic:
      return "V4 acyclic";
    case Rule::step_order:
      return "V5 step order";
    case Rule::memory:
      return "V6 memory";
    case Rule::bounded_buffers:
      return "V7 bounded buffers";
    case Rule::streams:
      return "V8 streams";
    case Rule::versions:
      return "V9 versions";
  }
  return "?";
}

std::vector<Violation> check(const Schedule& schedule, const CheckRequest& request) {
  Findings findings;
  if (!check_shape(schedule, findings)) return std::move(findings).take();
  check_placement(schedule, findings);
  check_completeness(schedule, findings);
  if (!findings.empty()) return std::move(findings).take();

  const PassTable passes(schedule);
  check_local_order(schedule, passes, findings);
  check_acyclic(schedule, passes, findings);
  const bool plays_to_its_end = findings.empty();
  check_updates(schedule, findings);
  if (request.memory) check_memory(schedule, *request.memory, findings);
  if (!plays_to_its_end) return std::move(findings).take();

  if (request.buffers) check_buffers(schedule, passes, *request.buffers, findings);
  if (request.streams) check_streams(schedule, passes, *request.streams, findings);
  if (request.versions) check_versions(schedule, *request.versions, findings);
  return std::move(findings).take();
}

std::string render(const Schedule& schedule, const Violation& violation) {
  std::string text = to_string(violation.rule) + ": " + violation.reason + '\n';
  if (violation.device < 0) return text;
  const Lane& lane = schedule.lanes[violation.device];
  constexpr std::size_t around = 8;
  const std::size_t place = violation.position;
  const std::size_t length = violation.length;
  std::size_t begin = place > around ? place - around : 0;
  std::size_t end = std::min(lane.size(), place + length + around);
  while (begin > 0 && (lane[begin - 1].flags & Action::with_next)) --begin;
  while (end < lane.size() && (lane[end - 1].flags & Action::with_next)) ++end;

  const std::string head =
      "  d" + std::to_string(violation.device) + ": " + (begin > 0 ? "... " : "");
  const std::string tail = end < lane.size() ? " ..." : "";
  const auto print = [&](std::size_t from, std::size_t to) {
    return to_string(Lane(lane.begin() + from, lane.begin() + to));
  };
  // The text before the marked place, with its blank or bracket. A group cut here lacks its closing
  // bracket, as in the full lane.
  std::string before = print(begin, std::min(place, lane.size()));
  if (place > begin) before += ' ';
  if (place < lane.size() && (lane[place].flags & Action::with_next) &&
      (place == 0 || !(lane[place - 1].flags & Action::with_next)))
    before += '(';
  std::size_t marked = 0;
  for (std::size_t k = place; k < std::min(place + length, lane.size()); ++k)
    marked += to_string(lane[k]).size() + (k > place ? 1 : 0);
  text += head + print(begin, end) + tail + '\n';
  text += std::string(head.size() + before.size(), ' ') + '^' +
          std::string(marked > 0 ? marked - 1 : 0, '~') + '\n';
  return text;
}

}  // namespace troupe::schedules
