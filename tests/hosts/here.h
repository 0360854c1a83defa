#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "apps/program.h"

namespace troupe::tests {

/// Runs the program in its own folder, with an `ssh` that stays on this machine:
/// tests/hosts/bin/ssh.
inline Ended with_ssh(const Workplace& here, const std::vector<std::string>& arguments) {
  const std::string folder = here.path().string();
  return troupe(
      here, Launch{arguments,
                   {},
                   [&] {
                     const char* path = std::getenv("PATH");
                     setenv("PATH",
                            (std::string(TROUPE_TEST_DATA "/bin:") + (path ? path : "")).c_str(),
                            1);
                     setenv("XDG_STATE_HOME", folder.c_str(), 1);
                     setenv("HOME", folder.c_str(), 1);
                     unsetenv("TROUPE_HEAD");
                   },
                   {}});
}

}  // namespace troupe::tests
