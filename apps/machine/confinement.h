#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "config/load.h"
#include "core/result.h"

namespace troupe::apps {

/// The folders in which a head with keys opens and writes files for users who submit runs. Without
/// these bounds, everybody with an operator's key could read and overwrite all files of the head's
/// user.
class Confinement {
 public:
  /// Sets no bounds: orders come from the user who owns the files.
  Confinement() = default;
  /// Confines files to the working folder and the folders in `more`.
  static Result<Confinement> to(const std::vector<std::string>& more);

  /// Fails if a path of the configuration leads out of the folders, also by ".." or a symbolic
  /// link. The error names the key, the folders and the option that allows another folder.
  Status check(const config::Loaded& loaded) const;

 private:
  Status check(const std::string& key, const std::string& path) const;

  std::vector<std::filesystem::path> folders_;  // Empty: no bounds.
};

}  // namespace troupe::apps
