#pragma once

#include <optional>
#include <string>

#include "core/result.h"

namespace troupe::apps {

constexpr int usual_head_port = 4700;

/// Turns "10.0.0.1:4700", "10.0.0.1" or a whole endpoint into an endpoint.
std::string to_endpoint(const std::string& address);

/// Returns the head's endpoint: `given`, else TROUPE_HEAD, else the head that this user last
/// started on this machine.
Result<std::string> find_head(const std::string& given);

/// Returns the path of the secret that this user's heads share; empty if no folder is available.
std::string shared_secret_path();

/// Records the endpoint of this process' head as the last one, as commands of this machine reach
/// it.
void remember_head(const std::string& endpoint);

}  // namespace troupe::apps
