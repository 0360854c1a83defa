#include "apps/commands/cluster_file.h"

#include "config/toml/toml.h"
#include "core/json.h"
#include "storage/files/files.h"

namespace troupe::apps {
namespace {

/// Reads a file; errors begin with its name.
template <class T, class Read>
Result<T> from_file(const std::string& path, Read read) {
  const auto bytes = storage::disk_files()->read(path);
  if (!bytes) return bytes.error();
  Result<T> result = read(std::string(bytes->text()));
  if (!result) return Error{path + ":" + result.error().text};
  return result;
}

}  // namespace

Result<schedules::Cluster> read_cluster_file(const std::string& path) {
  using schedules::Cluster;
  return from_file<Cluster>(path, [&](const std::string& text) -> Result<Cluster> {
    const auto root = path.ends_with(".json") ? parse_json(text) : config::parse_toml(text);
    if (!root) return root.error();
    return schedules::read_cluster(*root);
  });
}

Result<schedules::DeviceProfile> read_profile_file(const std::string& path) {
  return from_file<schedules::DeviceProfile>(
      path, [](const std::string& text) { return schedules::read_profile(text); });
}

}  // namespace troupe::apps
