#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace troupe::apps {

/// A machine of a hostfile.
struct Host {
  std::string name;  // As ssh takes it: "alpha", "me@10.0.0.7".
  int slots = 1;     // How many node processes share it.

  friend bool operator==(const Host&, const Host&) = default;
};

/// "alpha" for "me@alpha".
std::string machine_of(const Host& host);

/// A hostfile as Open MPI, DeepSpeed and Horovod have it, a machine a line:
///
///     # machine    nodes on it (1)
///     alpha        slots=2
///     me@10.0.0.7  slots=1 max_slots=4    # Open MPI's bound: checked, and not used
///
/// Errors are in the style of compilers, "hosts:3:7: error: ...", all that there are.
Result<std::vector<Host>> parse_hostfile(std::string_view text, const std::string& name);
Result<std::vector<Host>> read_hostfile(const std::string& path);

}  // namespace troupe::apps
