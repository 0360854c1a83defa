#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/value.h"
#include "storage/files/temporary_folder.h"

namespace troupe::tests {

/// A folder of its own, gone with the test.
class Workplace {
 public:
  const std::filesystem::path& path() const { return path_; }
  std::string write(const std::string& name, const std::string& text) const;
  std::string read(const std::string& name) const;

 private:
  troupe::storage::TemporaryFolder folder_ = *troupe::storage::TemporaryFolder::make();
  std::filesystem::path path_ = folder_.path();
};

/// How the program ended, and what it printed.
struct Ended {
  int code = 0;  // 128 + the signal if one ended it.
  std::string out;
  std::string err;

  /// The events of a kind that it printed with --output json.
  std::vector<Value> events(const std::string& type) const;
};

struct Launch {
  std::vector<std::string> arguments;
  std::string input;
  std::function<void()> before_start;        // In the new process: limits.
  std::function<void(pid_t)> while_it_runs;  // Signals.
};

/// The program itself, as a user runs it, in the given folder.
Ended troupe(const Workplace& workplace, const Launch& launch);
Ended troupe(const Workplace& workplace, const std::vector<std::string>& arguments);

}  // namespace troupe::tests
