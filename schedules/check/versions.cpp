#include "schedules/check/versions.h"

#include <algorithm>
#include <map>

#include "schedules/check/rules.h"

namespace troupe::schedules {
namespace {

/// The actions of one stage on one device.
struct StageLane {
  int stage = 0;
  int device = 0;
  Lane actions;
};

std::vector<StageLane> stage_lanes(const Schedule& schedule) {
  std::vector<StageLane> all;
  for (int d = 0; d < schedule.devices(); ++d) {
    std::map<int, Lane> stages;
    for (const Action action : schedule.lanes[d]) stages[action.stage].push_back(action);
    for (auto& [stage, lane] : stages) all.push_back({stage, d, std::move(lane)});
  }
  return all;
}

/// Returns, by micro-batch, the number of O's before the one that applies its gradient.
std::map<std::uint32_t, int> updates_before(const Lane& lane) {
  std::map<std::uint32_t, int> before;
  int updates = 0;
  for (const Action action : lane) {
    if (action.kind == Kind::update) ++updates;
    if (gives_weight_gradient(action.kind)) before[action.micro_batch] = updates;
  }
  return before;
}

/// Returns the version that a forward pass reads if `newest` is the latest.
int version_read(VersionRule rule, int newest, int updates_before) {
  switch (rule) {
    case VersionRule::stash:
    case VersionRule::newest:
      return newest;
    case VersionRule::lag:
      return std::max(0, updates_before - 1);
  }
  return newest;
}

/// Returns the most versions kept at once: each is kept until its successor and last read are done.
int most_kept(const std::vector<std::size_t>& made_at, const std::vector<std::size_t>& last_read) {
  // For each newest version, the change in the number of older versions kept.
  std::vector<int> change(made_at.size() + 1, 0);
  for (std::size_t version = 0; version < made_at.size(); ++version) {
    const auto outlived = std::ranges::lower_bound(made_at, last_read[version]) - made_at.begin();
    if (static_cast<std::size_t>(outlived) <= version + 1) continue;
    ++change[version + 1];
    --change[outlived];
  }
  int most = 0;
  int kept = 0;
  for (const int difference : change) most = std::max(most, kept += difference);
  return most + 1;
}

Result<VersionTrace> replay(const StageLane& of, VersionRule rule) {
  VersionTrace trace{of.stage, of.device, {}, 1};
  const auto before = updates_before(of.actions);
  std::map<std::uint32_t, int> read;
  std::vector<std::size_t> made_at = {0};
  std::vector<std::size_t> last_read = {0};
  for (std::size_t k = 0; k < of.actions.size(); ++k) {
    const Action action = of.actions[k];
    const int newest = static_cast<int>(made_at.size()) - 1;
    if (action.kind == Kind::update) {
      made_at.push_back(k);
      last_read.push_back(k);
    } else if (action.kind == Kind::forward) {
      const int version = version_read(rule, newest, before.at(action.micro_batch));
      if (version > newest)
        return Error{to_string(action) + " on device " + std::to_string(of.device) +
                     " reads version " + std::to_string(version) + ", but only version " +
                     std::to_string(newest) + " is made; update less often"};
      read[action.micro_batch] = version;
      last_read[version] = k;
    } else if (gives_input_gradient(action.kind)) {
      const int version = read.at(action.micro_batch);
      trace.staleness.push_back(before.at(action.micro_batch) - version);
      last_read[rule == VersionRule::newest ? newest : version] = k;
    }
  }
  trace.copies = most_kept(made_at, last_read);
  return trace;
}

}  // namespace

Result<std::vector<VersionTrace>> replay_versions(const Schedule& schedule, VersionRule rule) {
  std::vector<VersionTrace> traces;
  for (const StageLane& lane : stage_lanes(schedule)) {
    auto trace = replay(lane, rule);
    if (!trace) return trace.error();
    traces.push_back(*std::move(trace));
  }
  return traces;
}

namespace {

/// Returns the position of a stage's `count`th backward pass (from 0) in a lane.
std::size_t backward_pass(const Lane& lane, int stage, std::ptrdiff_t count) {
  std::size_t position = 0;
  for (;; ++position)
    if (lane[position].stage == stage && gives_input_gradient(lane[position].kind) && count-- == 0)
      return position;
}

}  // namespace

void check_versions(const Schedule& schedule, const VersionLimits& limits, Findings& findings) {
  const auto traces = replay_versions(schedule, limits.rule);
  if (!traces) {
    findings.add(Rule::versions, -1, 0, traces.error().text);
    return;
  }
  for (const VersionTrace& trace : *traces) {
    const std::string where =
        "stage " + std::to_string(trace.stage) + " on device " + std::to_string(trace.device);
    const auto late = std::ranges::find_if(
        trace.staleness, [&](int staleness) { return staleness > limits.staleness; });
    if (late != trace.staleness.end()) {
      const Lane& lane = schedule.lanes[trace.device];
      const std::size_t position = backward_pass(lane, trace.stage, late - trace.staleness.begin());
      findings.add(Rule::versions, trace.device, position,
                   where + ": the gradient of " + to_string(lane[position]) + " is " +
                       std::to_string(*late) + " versions late, declared are at most " +
                       std::to_string(limits.staleness));
    }
    if (trace.copies > limits.copies)
      findings.add(Rule::versions, trace.device, 0,
                   where + " keeps " + std::to_string(trace.copies) +
                       " versions of its weights, declared are at most " +
                       std::to_string(limits.copies));
  }
}

}  // namespace troupe::schedules
