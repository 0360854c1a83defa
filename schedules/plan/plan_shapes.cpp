#include <algorithm>
#include <cmath>

#include "schedules/check/check.h"
#include "schedules/generators/registry.h"
#include "schedules/plan/plan_draft.h"

namespace troupe::schedules {

namespace {

constexpr int most_units = 1 << 20;
constexpr int most_devices = 1 << 16;
constexpr int most_micro_batches = 1 << 22;
constexpr int most_groups = 1 << 12;
// Every device count up to this one is tried, then steps of 10 %.
constexpr int tried_one_by_one = 32;

std::string list(const std::vector<int>& numbers) {
  std::string text = "[";
  for (std::size_t k = 0; k < numbers.size(); ++k)
    text += (k == 0 ? "" : ", ") + std::to_string(numbers[k]);
  return text + "]";
}

Status check_boundaries(const PlanRequest& request) {
  const auto& cuts = request.boundaries;
  const auto& again = request.recompute.by_stage;
  if (!again.empty() && again.size() + 1 != cuts.size())
    return Error{"recompute has " + std::to_string(again.size()) +
                 " entries, but boundaries make " +
                 std::to_string(std::max<std::size_t>(cuts.size(), 1) - 1) +
                 " stages; there must be one for each, and boundaries must be there"};
  if (cuts.empty()) return Done{};
  const int units = static_cast<int>(request.units.size());
  const std::string where = "boundaries " + list(cuts) + ": ";
  const std::string want = "; begin with 0, go up, and end with " + std::to_string(units);
  const auto named = [&](int unit) {
    return "unit " + std::to_string(unit) + " (" + request.units[unit].name + ")";
  };
  if (cuts.size() < 2) return Error{where + "a stage has a beginning and an end" + want};
  for (int cut : cuts)
    if (cut < 0 || cut > units)
      return Error{where + "the model has " + std::to_string(units) + " units, not " +
                   std::to_string(cut) + want};
  if (cuts.front() != 0) return Error{where + named(0) + " would be in no stage" + want};
  for (std::size_t k = 0; k + 1 < cuts.size(); ++k) {
    if (cuts[k + 1] == cuts[k])
      return Error{where + "stage " + std::to_string(k) + " would have no unit" + want};
    if (cuts[k + 1] < cuts[k])
      return Error{where + named(cuts[k + 1]) + " would be in two stages" + want};
  }
  if (cuts.back() != units)
    return Error{where + named(cuts.back()) + " would be in no stage" + want};
  const int stages = static_cast<int>(cuts.size()) - 1;
  if (request.stages && *request.stages != stages)
    return Error{where + "they make " + std::to_string(stages) +
                 " stages, but stages = " + std::to_string(*request.stages)};
  return Done{};
}

Status check_cluster(const Cluster& cluster) {
  if (cluster.device_count() == 0) return Error{"the cluster has no devices"};
  if (cluster.device_count() > most_devices)
    return Error{"the cluster has more than " + std::to_string(most_devices) + " devices"};
  for (const ClusterNode& node : cluster.nodes)
    for (const ClusterDevice& device : node.devices)
      if (!(device.speed >= 1e-3 && device.speed <= 1e3) || device.memory < 0)
        return Error{"node " + node.name +
                     " has a device whose speed is not from 0.001 to 1000, "
                     "or whose memory is negative"};
  return Done{};
}

Status check_counts(const PlanRequest& request) {
  const auto out_of = [](const std::string& what, std::int64_t found, std::int64_t most) {
    return Error{what + " = " + std::to_string(found) + "; want 1 to " + std::to_string(most)};
  };
  if (request.units.empty() || request.units.size() > most_units)
    return out_of("units", static_cast<std::int64_t>(request.units.size()), most_units);
  if (request.micro_batches < 1 || request.micro_batches > most_micro_batches)
    return out_of("micro-batches", request.micro_batches, most_micro_batches);
  if (request.groups < 1 || request.groups > most_groups)
    return out_of("groups", request.groups, most_groups);
  if (request.micro_batches % request.groups != 0)
    return Error{std::to_string(request.micro_batches) + " micro-batches are not divisible into " +
                 std::to_string(request.groups) + " reduction groups"};
  if (request.chunks < 1 || request.chunks > most_devices)
    return out_of("chunks", request.chunks, most_devices);
  if (request.stages && (*request.stages < 1 || *request.stages > most_devices))
    return out_of("stages", *request.stages, most_devices);
  if (request.replicas && (*request.replicas < 1 || *request.replicas > most_devices))
    return out_of("replicas", *request.replicas, most_devices);
  if (request.replicas.value_or(1) > request.groups)
    return Error{"replicas = " + std::to_string(*request.replicas) + ", but a step has " +
                 std::to_string(request.groups) +
                 " reduction groups and a replica takes whole ones; use at most " +
                 std::to_string(request.groups)};
  return Done{};
}

/// Returns the stages per device (chunks), taken from the schedule's name if the name implies them.
int chunks_of(const PlanRequest& request, const std::string& name) {
  const NamedSchedule* schedule = find_schedule(name);
  if (!schedule || request.chunks > 1) return request.chunks;
  if (schedule->chunks == Chunks::two) return 2;
  if (schedule->name == name) return 1;
  // For a name such as "interleaved-v3", find the number for which generate() works.
  for (int chunks = 1; chunks <= 64; ++chunks)
    if (generate(name, {.stages = chunks, .micro_batches = 1, .chunks = chunks})) return chunks;
  return 1;
}

/// Returns all synchronous schedules for "auto", each with its number of chunks.
std::vector<std::pair<std::string, int>> all_schedules(const PlanRequest& request) {
  std::vector<std::pair<std::string, int>> all;
  for (const NamedSchedule& schedule : named_schedules()) {
    if (schedule.mode != Mode::synchronous) continue;
    const std::string name(schedule.name);
    switch (schedule.chunks) {
      case Chunks::one:
        all.emplace_back(name, 1);
        break;
      case Chunks::two:
        all.emplace_back(name, 2);
        break;
      case Chunks::several:
      case Chunks::even:
        all.emplace_back(name, std::max(2, request.chunks - request.chunks % 2));
        break;
    }
  }
  return all;
}

class Shapes {
 public:
  explicit Shapes(const PlanRequest& request)
      : request_(request), devices_(request.cluster.device_count()) {}

  Result<std::vector<PlanShape>> all() {
    if (request_.written) {
      add_written();
    } else if (request_.schedule == "auto") {
      for (const auto& [name, chunks] : all_schedules(request_)) add(name, chunks);
    } else {
      if (Status known = generate_any(); !known) return known.error();
      add(request_.schedule, chunks_of(request_, request_.schedule));
    }
    if (shapes_.empty()) return reason_;
    return shapes_;
  }

 private:
  /// Rejects an unknown name with an error that lists the nearest names.
  Status generate_any() const {
    if (find_schedule(request_.schedule)) return Done{};
    return generate(request_.schedule, {}).error();
  }

  void add_written() {
    const Schedule& written = *request_.written;
    if (request_.micro_batches % written.micro_batches != 0) {
      reason_ = {"the schedule " + written.name + " is for " +
                 std::to_string(written.micro_batches) +
                 " micro-batches, which does not divide the " +
                 std::to_string(request_.micro_batches) + " of a step"};
      return;
    }
    const int replicas = request_.micro_batches / written.micro_batches;
    if (request_.replicas.value_or(replicas) != replicas || replicas > request_.groups) {
      reason_ = {"the schedule " + written.name + " is for " +
                 std::to_string(written.micro_batches) + " micro-batches, so a step of " +
                 std::to_string(request_.micro_batches) + " takes " + std::to_string(replicas) +
                 " replicas"};
      return;
    }
    if (pinned_stages().value_or(written.stages) != written.stages) {
      reason_ = {"the schedule " + written.name + " has " + std::to_string(written.stages) +
                 " stages, but stages = " + std::to_string(*pinned_stages())};
      return;
    }
    add_shape(written.name, written.devices(), written.stages / written.devices(), replicas);
  }

  void add(const std::string& name, int chunks) {
    if (const auto stages = pinned_stages()) {
      if (*stages % chunks != 0)
        reason_ = {"stages = " + std::to_string(*stages) + " is not divisible by the " +
                   std::to_string(chunks) + " stages that a device holds with schedule " + name};
      else
        add_replicated(name, *stages / chunks, chunks);
      return;
    }
    const int units = static_cast<int>(request_.units.size());
    const int most = std::min(units / chunks, devices_ / request_.replicas.value_or(1));
    if (most == 0) add_replicated(name, 1, chunks);
    for (int positions = 1; positions <= most;
         positions += positions < tried_one_by_one ? 1 : positions / 10)
      add_replicated(name, positions, chunks);
  }

  void add_replicated(const std::string& name, int positions, int chunks) {
    if (request_.replicas) return add_shape(name, positions, chunks, *request_.replicas);
    // Over slow links fewer replicas than fit may be faster.
    int added = 0;
    const int most = std::max(1, std::min(devices_ / positions, request_.groups));
    for (const int wanted : {most, most / 2, most / 4, 1}) {
      int replicas = std::max(1, wanted);
      while (request_.even && request_.groups % replicas != 0) --replicas;
      if (replicas != added) add_shape(name, positions, chunks, replicas);
      added = replicas;
    }
  }

  void add_shape(const std::string& name, int positions, int chunks, int replicas) {
    const std::int64_t needed = std::int64_t{positions} * replicas;
    if (needed > devices_) {
      reason_ = {"stages = " + std::to_string(positions * chunks) + " with chunks = " +
                 std::to_string(chunks) + " and replicas = " + std::to_string(replicas) + " need " +
                 std::to_string(needed) + " devices, and the cluster has " +
                 std::to_string(devices_) + "; use fewer stages or replicas, or more chunks"};
      return;
    }
    const int units = static_cast<int>(request_.units.size());
    if (positions * chunks > units) {
      reason_ = {"stages = " + std::to_string(positions * chunks) + ", but the model has " +
                 std::to_string(units) + " units and a stage needs at least one; use at most " +
                 std::to_string(units)};
      return;
    }
    shapes_.push_back({name, positions, chunks, replicas, Hops::hidden});
    if (chunks == 1 && positions > 1)
      shapes_.push_back({name, positions, chunks, replicas, Hops::exposed});
  }

  std::optional<int> pinned_stages() const {
    if (!request_.boundaries.empty()) return static_cast<int>(request_.boundaries.size()) - 1;
    return request_.stages;
  }

  const PlanRequest& request_;
  int devices_;
  std::vector<PlanShape> shapes_;
  Error reason_{"no schedule fits the request"};
};

}  // namespace

Status check_written(const Schedule& written) {
  if (written.stages < 1 || written.micro_batches < 1 || written.lanes.empty())
    return Error{"the schedule " + written.name + " has no stages, micro-batches or devices"};
  const auto violations = check(written);
  if (violations.empty()) return check_steps(written, written.micro_batches);
  return Error{"the schedule " + written.name + " is not valid:\n" +
               render(written, violations.front())};
}

Status check_request(const PlanRequest& request) {
  if (Status counts = check_counts(request); !counts) return counts;
  if (Status costs = check_units(request.units); !costs) return costs;
  if (Status cluster = check_cluster(request.cluster); !cluster) return cluster;
  if (Status boundaries = check_boundaries(request); !boundaries) return boundaries;
  return request.written ? check_written(*request.written) : Done{};
}

Result<std::vector<PlanShape>> shapes_for(const PlanRequest& request) {
  return Shapes(request).all();
}

}  // namespace troupe::schedules
