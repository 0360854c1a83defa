#pragma once

#include <string>

#include "core/result.h"
#include "schedules/simulate/cluster.h"
#include "schedules/simulate/cost_model.h"

namespace troupe::apps {

/// Reads `--cluster FILE`, in TOML or JSON. Errors begin with the path and the place in it.
Result<schedules::Cluster> read_cluster_file(const std::string& path);
/// Reads `--profile FILE`.
Result<schedules::DeviceProfile> read_profile_file(const std::string& path);

}  // namespace troupe::apps
