#pragma once

#include <optional>
#include <string>

#include "core/result.h"

namespace troupe::apps {

constexpr int usual_head_port = 4700;

/// Turns "10.0.0.1:4700", "10.0.0.1" or a whole endpoint into an endpoint.
std::string to_endpoint(const std::string& address);

/// The endpoint of a head, and the file that contains it; no file if a person has named the head.
struct KnownHead {
  std::string endpoint;
  std::string file;
};

/// Returns the head that is meant: `given`, else TROUPE_HEAD, else the one whose state folder
/// (.troupe) is in the working folder or the nearest folder above it and belongs to this user, else
/// the one that this user last started on this machine.
Result<KnownHead> known_head(const std::string& given);
/// Returns the endpoint of known_head().
Result<std::string> find_head(const std::string& given);

/// Returns the path of the secret that this user's heads share; empty if no folder is available.
std::string shared_secret_path();

/// Records the endpoint of this process' head, as commands of this machine reach it: as the last
/// one, and in its state folder.
void remember_head(const std::string& endpoint, const std::string& state);
/// Removes the endpoint from the state folder of a head that ends.
void forget_head(const std::string& state);

}  // namespace troupe::apps
