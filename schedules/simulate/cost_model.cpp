#include "schedules/simulate/cost_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/json.h"
#include "core/value.h"

namespace troupe::schedules {

namespace {

constexpr double longest_time = 1e6;          // Seconds. No pass of a micro-batch takes 11 days.
constexpr Bytes most_bytes = Bytes{1} << 50;  // No unit holds a petabyte.
constexpr double fastest_rate = 1e21;
constexpr std::size_t most_kernels = 10'000;

void set_rate(Value& map, const Rate& rate) {
  map.set("operations_per_second", rate.operations);
  map.set("bytes_per_second", rate.bandwidth);
}

/// Reads a tree and remembers the first error.
class ProfileReader {
 public:
  Result<DeviceProfile> read(const Value& root) {
    DeviceProfile profile;
    if (!root.map()) return Error{place(root) + "a profile is a map"};
    if (number(root, "profile", 1, 1) != 1) return *error_;
    profile.name = text(root, "name");
    profile.rate = rate(root);
    profile.overhead = Seconds(number(root, "overhead_seconds", 0, longest_time));
    // JSON has no infinity, so an infinite bandwidth is null.
    if (const Value* bandwidth = find(root, "link_bytes_per_second");
        bandwidth && !bandwidth->is_null())
      profile.link.bandwidth = number(root, "link_bytes_per_second", 1, fastest_rate);
    profile.link.latency = number(root, "link_latency_seconds", 0, longest_time);
    if (const Value* kernels = find(root, "kernels")) {
      if (!kernels->list() || kernels->list()->size() > most_kernels)
        fail(*kernels, "kernels must be a list of at most " + std::to_string(most_kernels));
      else
        for (const Value& kernel : *kernels->list())
          profile.kernels.push_back({text(kernel, "name"), rate(kernel)});
    }
    if (error_) return *error_;
    return profile;
  }

 private:
  static std::string place(const Value& value) {
    if (value.position.line == 0) return "";
    return std::to_string(value.position.line) + ":" + std::to_string(value.position.column) + ": ";
  }

  void fail(const Value& where, const std::string& text) {
    if (!error_) error_ = Error{place(where) + text};
  }

  const Value* find(const Value& map, const std::string& key) {
    const Value* found = map.find(key);
    if (!found) fail(map, "the key \"" + key + "\" is missing");
    return found;
  }

  std::string text(const Value& map, const std::string& key) {
    const Value* found = find(map, key);
    if (found && !found->text())
      fail(*found, key + " must be a text, not " + std::string(describe(found->kind())));
    return found && found->text() ? *found->text() : "";
  }

  double number(const Value& map, const std::string& key, double least, double most) {
    const Value* found = find(map, key);
    if (!found) return 0;
    const double number = found->is_number() ? found->number() : NAN;
    if (number >= least && number <= most) return number;
    fail(*found, key + " must be a number from " + shortest(least) + " to " + shortest(most));
    return 0;
  }

  Rate rate(const Value& map) {
    return {number(map, "operations_per_second", 1, fastest_rate),
            number(map, "bytes_per_second", 1, fastest_rate)};
  }

  std::optional<Error> error_;
};

}  // namespace

Seconds time_of(const Work& work, std::string_view kernel, const DeviceProfile& device) {
  const auto listed = std::find_if(device.kernels.begin(), device.kernels.end(),
                                   [&](const auto& entry) { return entry.name == kernel; });
  const Rate& rate = listed == device.kernels.end() ? device.rate : listed->rate;
  const double longer = std::max(work.operations / rate.operations, work.bytes / rate.bandwidth);
  return Seconds(longer) + work.launches * device.overhead;
}

Status check_units(std::span<const UnitCost> units) {
  for (const UnitCost& unit : units) {
    const std::pair<const char*, Seconds> times[] = {{"forward", unit.forward},
                                                     {"backward", unit.backward},
                                                     {"backward_input", unit.backward_input},
                                                     {"backward_weight", unit.backward_weight},
                                                     {"update", unit.update}};
    for (const auto& [what, time] : times)
      if (!(time.count() >= 0 && time.count() <= longest_time))
        return Error{"unit \"" + unit.name + "\": " + what + " takes " + shortest(time.count()) +
                     " seconds; want 0 to " + shortest(longest_time)};
    std::vector<std::pair<const char*, Bytes>> sizes = {
        {"parameters", unit.parameters},      {"weight", unit.weight},
        {"gradient", unit.gradient},          {"optimizer", unit.optimizer},
        {"update_room", unit.update_room},    {"stash", unit.stash},
        {"stash_shared", unit.stash_shared},  {"stash_input", unit.stash_input},
        {"stash_weight", unit.stash_weight},  {"stash_weight_shared", unit.stash_weight_shared},
        {"workspace", unit.workspace},        {"boundary", unit.boundary},
        {"boundary_back", unit.boundary_back}};
    for (const TiedParameters& tied : unit.tied) {
      sizes.emplace_back("tied.weight", tied.weight);
      sizes.emplace_back("tied.gradient", tied.gradient);
    }
    for (const auto& [what, size] : sizes)
      if (size < 0 || size > most_bytes)
        return Error{"unit \"" + unit.name + "\": " + what + " is " + std::to_string(size) +
                     "; want 0 to " + std::to_string(most_bytes)};
    if (unit.stash_input > unit.stash + unit.stash_shared || unit.stash_weight > unit.stash ||
        unit.stash_weight_shared > unit.stash_shared)
      return Error{"unit \"" + unit.name + "\": stash is " + std::to_string(unit.stash) +
                   ", less than one of its parts, stash_input and stash_weight"};
  }
  return Done{};
}

std::string to_json(const DeviceProfile& profile) {
  Value root;
  root.set("profile", 1);
  root.set("name", profile.name);
  set_rate(root, profile.rate);
  root.set("overhead_seconds", profile.overhead.count());
  root.set("link_bytes_per_second", profile.link.bandwidth);
  root.set("link_latency_seconds", profile.link.latency);
  Value::List kernels;
  for (const DeviceProfile::Kernel& kernel : profile.kernels) {
    Value entry;
    entry.set("name", kernel.name);
    set_rate(entry, kernel.rate);
    kernels.push_back(std::move(entry));
  }
  root.set("kernels", std::move(kernels));
  return to_json_lines(root);
}

Result<DeviceProfile> read_profile(std::string_view json) {
  const auto root = parse_json(json, {.bytes = std::size_t{16} << 20, .depth = 8});
  if (!root) return root.error();
  return ProfileReader().read(*root);
}

}  // namespace troupe::schedules
