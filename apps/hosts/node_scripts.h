#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "apps/hosts/hostfile.h"
#include "apps/hosts/remote_place.h"

namespace troupe::apps {

/// The nodes that one `troupe up` starts. All their processes carry `name` in their environment.
/// `troupe down` finds them by it, and nothing else.
struct NodesOrder {
  std::string name;  // "up-1f0c..."
  std::string head;  // "tcp://10.0.0.1:4700"
  // The path of a key file on the machines, where "{host}" stands for the machine's name; or empty.
  std::string keys;
  std::string head_key;  // The head's public key; required if `keys` is given.
  RemotePlace place;
  // How long to wait until a node has joined the head or has ended.
  std::chrono::seconds patience{30};
};

/// Returns a script that starts a machine's nodes and reports for each whether it has joined. The
/// nodes live on when the script ends. The exit code is 1 if a node has not joined. Their output
/// and process numbers are kept in ~/.local/state/troupe/NAME on the machine.
std::string script_that_starts(const Host& host, const NodesOrder& order);

/// Returns a script that ends all processes of that name on its machine, including children. It
/// first asks the nodes to end, and kills the rest after `patience`. It prints how many processes
/// it ended. The exit code is 0 if none is left, also if there were none.
std::string script_that_ends(const std::string& name, std::chrono::seconds patience);

}  // namespace troupe::apps
