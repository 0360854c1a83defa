#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/result.h"

namespace troupe::apps {

/// The record of `troupe up`, which `troupe down` reads.
struct UpState {
  std::string name;  // The name that all started processes carry.
  std::string head;
  std::vector<std::string> hosts;  // Machines on which processes may run, as names for ssh.

  /// Adds a machine unless it is listed already.
  void add(const std::string& host);
  /// Returns false if the machine is not listed.
  bool remove(const std::string& host);
};

/// Returns a state with a new unique name and no machine.
UpState new_up(const std::string& head);

/// Returns the path of this user's file on this machine.
Result<std::string> up_state_path();

/// Returns nothing if the file does not exist: nothing was started, or everything was ended.
Result<std::optional<UpState>> read_up(const std::string& path);
/// Writes the file; removes it if there are no hosts.
Status write_up(const std::string& path, const UpState& state);

}  // namespace troupe::apps
