#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/value.h"
#include "storage/files/temporary_folder.h"

namespace troupe::tests {

/// A temporary folder that the destructor removes.
class Workplace {
 public:
  const std::filesystem::path& path() const { return path_; }
  std::string write(const std::string& name, const std::string& text) const;
  std::string read(const std::string& name) const;

 private:
  troupe::storage::TemporaryFolder folder_ = *troupe::storage::TemporaryFolder::make();
  std::filesystem::path path_ = folder_.path();
};

/// The exit code and the output of the program.
struct Ended {
  int code = 0;  // 128 + the signal if one ended it.
  std::string out;
  std::string err;

  /// Returns the events of a type that the program printed with --output json.
  std::vector<Value> events(const std::string& type) const;
};

struct Launch {
  std::vector<std::string> arguments;
  std::string input;
  std::function<void()> before_start;        // Runs in the new process, for example to set limits.
  std::function<void(pid_t)> while_it_runs;  // Runs beside the process.
};

/// Runs the program in the folder as a user does.
Ended troupe(const Workplace& workplace, const Launch& launch);
Ended troupe(const Workplace& workplace, const std::vector<std::string>& arguments);

inline bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Returns the words that completion offers after `words`.
std::vector<std::string> offered(const Workplace& here, std::vector<std::string> words);

}  // namespace troupe::tests
