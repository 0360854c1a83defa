#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace troupe::apps {

/// A machine of a hostfile.
struct Host {
  std::string name;  // The name for ssh: "alpha", "me@10.0.0.7".
  int slots = 1;     // How many node processes share the machine.

  friend bool operator==(const Host&, const Host&) = default;
};

/// Returns the name without the user: "alpha" for "me@alpha".
std::string machine_of(const Host& host);

/// Parses a hostfile in the format of Open MPI, DeepSpeed and Horovod, with a machine per line:
///
///     # machine    nodes on it (1)
///     alpha        slots=2
///     me@10.0.0.7  slots=1 max_slots=4    # Open MPI's bound: checked, and not used
///
/// Reports all errors in the style of compilers: "hosts:3:7: error: ...".
Result<std::vector<Host>> parse_hostfile(std::string_view text, const std::string& name);
Result<std::vector<Host>> read_hostfile(const std::string& path);

}  // namespace troupe::apps
