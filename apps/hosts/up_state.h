#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/result.h"

namespace troupe::apps {

/// What `troupe up` has started, and `troupe down` ends.
struct UpState {
  std::string name;  // That all its processes carry.
  std::string head;
  std::vector<std::string> hosts;  // Machines on which something may run, as ssh takes them.
};

/// A new name that nothing carries yet.
UpState new_up(const std::string& head, const std::vector<std::string>& hosts);

/// The file of this user on this machine.
Result<std::string> up_state_path();

/// Nothing where the file does not exist: nothing was started, or all was ended.
Result<std::optional<UpState>> read_up(const std::string& path);
/// Without hosts the file is removed.
Status write_up(const std::string& path, const UpState& state);

}  // namespace troupe::apps
