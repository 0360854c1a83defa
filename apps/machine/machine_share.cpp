#include "apps/machine/machine_share.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <string_view>
#include <thread>
#include <vector>

namespace troupe::apps {
namespace {

/// A hierarchy of control groups, and the group of this process in it.
struct Hierarchy {
  bool is_version_2 = false;
  // The controllers of a version 1 hierarchy: "cpu", "memory".
  std::vector<std::string> controllers;
  std::string mount_point;  // "/sys/fs/cgroup/memory"
  std::string mounted;      // The group that is mounted there: "/".
  std::string group;        // "/system.slice/troupe.service"
};

std::vector<std::string> parts_of(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

/// Returns the value of a line "key: value", trimmed.
std::string value_of(const std::string& path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const auto begin = line.find_first_not_of(" \t", key.size());
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return {};
}

/// Returns the numbers in a list of processors such as "0-3,8".
std::set<long> numbers_of(const std::string& list) {
  constexpr long most = 1 << 16;
  std::set<long> numbers;
  for (const auto& range : parts_of(list, ',')) {
    char* end = nullptr;
    const auto first = std::strtol(range.c_str(), &end, 10);
    if (end == range.c_str()) continue;
    const auto last = *end == '-' ? std::strtol(end + 1, nullptr, 10) : first;
    for (long number = first; number <= std::min(last, most); ++number) numbers.insert(number);
  }
  return numbers;
}
/// Counts the numbers in a list such as "0-3,8".
int count_of(const std::string& list) { return static_cast<int>(numbers_of(list).size()); }

/// Returns the control group mounts of /proc/self/mountinfo, whose lines look like "33 32 0:29 /
/// /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory".
std::vector<Hierarchy> mounted_hierarchies(const std::string& root) {
  std::vector<Hierarchy> found;
  std::ifstream file(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    const auto dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    const auto place = parts_of(line.substr(0, dash), ' ');
    const auto kind = parts_of(line.substr(dash + 3), ' ');
    if (place.size() < 5 || kind.size() < 3 || !kind[0].starts_with("cgroup")) continue;
    found.push_back({kind[0] == "cgroup2", parts_of(kind[2], ','), place[4], place[3], {}});
  }
  return found;
}

/// Adds this process' groups from /proc/self/cgroup: "4:memory:/a/b", "0::/a/b".
std::vector<Hierarchy> own_hierarchies(const std::string& root) {
  auto hierarchies = mounted_hierarchies(root);
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const auto controllers = parts_of(line.substr(first + 1, second - first - 1), ',');
    for (auto& one : hierarchies) {
      const bool is_it =
          controllers.empty()
              ? one.is_version_2
              : !one.is_version_2 && std::ranges::find(one.controllers, controllers.front()) !=
                                         one.controllers.end();
      if (is_it) one.group = line.substr(second + 1);
    }
  }
  return hierarchies;
}

/// Calls `read` with the folder of this process' group and with the folder of each visible
/// ancestor.
void for_each_group(const std::string& root, const Hierarchy& hierarchy,
                    const std::function<void(const std::string& folder)>& read) {
  // In a container the own group is mounted as the root, but /proc may show the host's path.
  std::string group = hierarchy.group;
  if (hierarchy.mounted != "/")
    group = group.starts_with(hierarchy.mounted) ? group.substr(hierarchy.mounted.size()) : "";
  if (group.find("..") != std::string::npos) group.clear();
  while (group.ends_with('/')) group.pop_back();
  const std::string top = root + hierarchy.mount_point;
  for (;;) {
    std::string folder = top;
    folder += group;
    read(folder);
    if (group.empty()) return;
    group.resize(group.find_last_of('/'));
  }
}

template <class Number>
void lower(std::optional<Number>& limit, Number to) {
  limit = limit ? std::min(*limit, to) : to;
}

std::optional<double> number_in(const std::string& path) {
  std::ifstream file(path);
  double number = 0;
  return file >> number ? std::optional(number) : std::nullopt;
}

void read_limits(const std::string& folder, bool is_version_2, MachineShare& share) {
  double allowed = 0, period = 0;
  if (is_version_2) {
    std::ifstream file(folder + "/cpu.max");  // "200000 100000", or "max 100000".
    if (file >> allowed >> period && allowed > 0 && period > 0)
      lower(share.quota, allowed / period);
  } else {
    allowed = number_in(folder + "/cpu.cfs_quota_us").value_or(-1);
    period = number_in(folder + "/cpu.cfs_period_us").value_or(0);
    if (allowed > 0 && period > 0) lower(share.quota, allowed / period);
  }
  const auto bytes = number_in(folder + (is_version_2 ? "/memory.max" : "/memory.limit_in_bytes"));
  // Version 1 writes "no limit" as a very large number.
  if (bytes && *bytes < static_cast<double>(share.total_memory))
    lower(share.memory_limit, static_cast<std::int64_t>(*bytes));
}

std::optional<std::int64_t> kilobytes_in(const std::string& path, std::string_view key) {
  const auto value = value_of(path, key);
  if (value.empty()) return {};
  return std::strtoll(value.c_str(), nullptr, 10) * 1024;
}

/// Returns the memory that a group uses, without files' pages that can be dropped.
std::optional<std::int64_t> memory_of_group(const std::string& folder, bool is_version_2) {
  const auto used =
      number_in(folder + (is_version_2 ? "/memory.current" : "/memory.usage_in_bytes"));
  if (!used) return {};
  const auto files =
      value_of(folder + "/memory.stat", is_version_2 ? "inactive_file " : "total_inactive_file ");
  const auto kept = static_cast<std::int64_t>(*used) - std::strtoll(files.c_str(), nullptr, 10);
  return std::max<std::int64_t>(kept, 0);
}

/// Adds the times of a line of /proc/stat: "cpu0 user nice system idle iowait irq softirq steal".
/// Those of guests are part of user and nice.
void add_times(std::istringstream& line, MachineUse& use) {
  constexpr int times = 8, idle = 3, waits_for_disk = 4;
  std::int64_t ticks = 0;
  for (int i = 0; i < times && line >> ticks; ++i) {
    use.all_ticks += ticks;
    if (i != idle && i != waits_for_disk) use.busy_ticks += ticks;
  }
}

}  // namespace

int MachineShare::cores() const {
  const int by_quota = quota ? static_cast<int>(std::min(*quota, 1e6)) : usable;
  return std::max(1, std::min(usable, by_quota));
}

MachineShare own_machine_share(const std::string& root) {
  MachineShare share;
  const int known = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  std::string online;
  std::getline(std::ifstream(root + "/sys/devices/system/cpu/online"), online);
  share.usable = count_of(value_of(root + "/proc/self/status", "Cpus_allowed_list:"));
  if (share.usable == 0) share.usable = known;
  share.online = std::max(count_of(online), share.usable);
  share.total_memory =
      std::strtoll(value_of(root + "/proc/meminfo", "MemTotal:").c_str(), nullptr, 10) * 1024;
  for (const auto& hierarchy : own_hierarchies(root))
    for_each_group(root, hierarchy, [&](const std::string& folder) {
      read_limits(folder, hierarchy.is_version_2, share);
    });
  return share;
}

MachineUse use_of_machine(const std::string& root) {
  MachineUse use;
  const auto usable = numbers_of(value_of(root + "/proc/self/status", "Cpus_allowed_list:"));
  std::ifstream stat(root + "/proc/stat");
  for (std::string text; std::getline(stat, text);) {
    std::istringstream line(text);
    std::string name;
    line >> name;
    if (!name.starts_with("cpu") || name == "cpu") continue;
    const long number = std::strtol(name.c_str() + 3, nullptr, 10);
    if (usable.empty() || usable.contains(number)) add_times(line, use);
  }
  const auto share = own_machine_share(root);
  if (!share.memory_limit) {
    const auto total = kilobytes_in(root + "/proc/meminfo", "MemTotal:");
    const auto available = kilobytes_in(root + "/proc/meminfo", "MemAvailable:");
    if (total && available) use.memory = std::max<std::int64_t>(*total - *available, 0);
    return use;
  }
  for (const auto& hierarchy : own_hierarchies(root))
    for_each_group(root, hierarchy, [&](const std::string& folder) {
      MachineShare of_group{.total_memory = share.total_memory};
      read_limits(folder, hierarchy.is_version_2, of_group);
      if (of_group.memory_limit == share.memory_limit && !use.memory)
        use.memory = memory_of_group(folder, hierarchy.is_version_2);
    });
  return use;
}

}  // namespace troupe::apps
