#include "schedules/formats/run_profile.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <vector>

#include "schedules/kind_names.h"

namespace troupe::schedules {

namespace {

using std::chrono::nanoseconds;

/// Rounds any number (a timeline may come from a file) to nanoseconds, at most 31 years.
nanoseconds rounded(double seconds) {
  constexpr double most = 1e9;
  return nanoseconds(std::llround(std::clamp(seconds, 0.0, most) * 1e9));
}

std::string numbered(const char* what, int number) { return what + (" " + std::to_string(number)); }

StackProfile::Sample sample_of(const Holding& holding) {
  const std::string device = numbered("device", holding.device);
  const std::string stage = numbered("stage", holding.stage);
  const std::string unit = holding.unit.empty() ? "the whole stage" : holding.unit;
  const std::string held(name_of(holding.held));
  return {.stack = {device, stage, unit, held},
          .amounts = {holding.bytes, 0, 0},
          .labels = {{"device", device}, {"stage", stage}, {"layer", unit}, {"memory", held}}};
}

struct Spent {
  nanoseconds time{};
  std::int64_t actions = 0;
};

struct Window {
  double start = 0;
  double end = 0;
};

Window window_of(const Timeline& timeline) {
  Window window{timeline.spans.front().start, timeline.spans.front().end};
  for (const Span& span : timeline.spans) {
    window.start = std::min(window.start, span.start);
    window.end = std::max(window.end, span.end);
  }
  return window;
}

/// Returns the time covered by no span; spans of one device may overlap.
double idle_time(std::vector<Window> busy, Window window) {
  std::ranges::sort(busy, {}, &Window::start);
  double idle = 0;
  double until = window.start;
  for (const Window& span : busy) {
    idle += std::max(0.0, span.start - until);
    until = std::max(until, span.end);
  }
  return idle + std::max(0.0, window.end - until);
}

void add_time(const Timeline& timeline, StackProfile& profile) {
  if (timeline.spans.empty()) return;
  std::map<std::tuple<int, int, Kind>, Spent> spent;  // Keyed by device, stage and kind.
  std::vector<std::vector<Window>> busy(static_cast<std::size_t>(timeline.devices));
  for (const Span& span : timeline.spans) {
    Spent& sum = spent[{span.device, span.action.stage, span.action.kind}];
    sum.time += rounded(span.end - span.start);
    ++sum.actions;
    busy[static_cast<std::size_t>(span.device)].push_back({span.start, span.end});
  }
  for (const auto& [of, sum] : spent) {
    const std::string device = numbered("device", std::get<0>(of));
    const std::string stage = numbered("stage", std::get<1>(of));
    const std::string action(name_of(std::get<2>(of)));
    profile.samples.push_back(
        {.stack = {device, stage, action},
         .amounts = {0, sum.time.count(), sum.actions},
         .labels = {{"device", device}, {"stage", stage}, {"action", action}}});
  }
  const Window window = window_of(timeline);
  profile.duration = rounded(window.end - window.start);
  for (int d = 0; d < timeline.devices; ++d) {
    const std::string device = numbered("device", d);
    const auto idle = rounded(idle_time(std::move(busy[static_cast<std::size_t>(d)]), window));
    profile.samples.push_back({.stack = {device, "idle"},
                               .amounts = {0, idle.count(), 0},
                               .labels = {{"device", device}, {"action", "idle"}}});
  }
}

}  // namespace

StackProfile run_profile(const RunMemory& memory, const std::optional<Timeline>& timeline) {
  StackProfile profile;
  profile.name = memory.run;
  profile.measures = {{"memory", "bytes"}, {"time", "nanoseconds"}, {"actions", "count"}};
  profile.comments = {"run: " + memory.run, "plan: " + memory.plan,
                      "memory: the most that each device holds, by the plan"};
  for (const Holding& holding : memory.holdings) profile.samples.push_back(sample_of(holding));
  if (timeline) {
    profile.comments.push_back("time, actions: what each device did in the last rounds, measured");
    add_time(*timeline, profile);
  }
  return profile;
}

}  // namespace troupe::schedules
