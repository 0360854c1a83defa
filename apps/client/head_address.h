#pragma once

#include <optional>
#include <string>

#include "core/result.h"

namespace troupe::apps {

constexpr int usual_head_port = 4700;

/// "10.0.0.1:4700", "10.0.0.1" or a whole endpoint, as an endpoint.
std::string to_endpoint(const std::string& address);

/// The head that is meant: what was given, else TROUPE_HEAD, else the last one that was started on
/// this machine by this user.
Result<std::string> find_head(const std::string& given);

/// Where heads of this user keep the secret that they share; empty if there is no such place.
std::string shared_secret_path();

/// Remembers the head of this process as the last one.
void remember_head(const std::string& endpoint);

}  // namespace troupe::apps
