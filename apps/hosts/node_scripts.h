#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "apps/hosts/hostfile.h"
#include "apps/hosts/remote_place.h"

namespace troupe::apps {

/// The nodes that one `troupe up` starts. All their processes carry its name in their environment,
/// by which they are found again, and nobody else is.
struct NodesOrder {
  std::string name;      // "up-1f0c..."
  std::string head;      // "tcp://10.0.0.1:4700"
  std::string keys;      // A file on the machines, "{host}" standing for each one's name; or empty.
  std::string head_key;  // With keys.
  RemotePlace place;
  std::chrono::seconds patience{30};  // Until a node has joined the head, or has ended.
};

/// Starts a machine's nodes, which go on when the script ends, and says of each whether it has
/// joined. Exit code 1 where one has not. What they say is kept beside their process numbers in
/// ~/.local/state/troupe/NAME there.
std::string script_that_starts(const Host& host, const NodesOrder& order);

/// Ends all processes of that name on the machine where it runs, children included: first the nodes
/// are asked to, and after the patience whoever is left is killed. Says how many there were. Exit
/// code 0 where there are none any more, and also where there were none.
std::string script_that_ends(const std::string& name, std::chrono::seconds patience);

}  // namespace troupe::apps
