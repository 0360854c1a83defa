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

  /// Each machine once.
  void add(const std::string& host);
  /// False if it is not there.
  bool remove(const std::string& host);
};

/// With a new name that nothing carries yet, and no machine.
UpState new_up(const std::string& head);

/// The file of this user on this machine.
Result<std::string> up_state_path();

/// Nothing where the file does not exist: nothing was started, or all was ended.
Result<std::optional<UpState>> read_up(const std::string& path);
/// Without hosts the file is removed.
Status write_up(const std::string& path, const UpState& state);

}  // namespace troupe::apps
