#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "config/load.h"
#include "core/result.h"

namespace troupe::apps {

/// The folders in which a head with keys opens and writes files for those who submit runs. Without
/// them, whoever has an operator's key could read and overwrite whatever the head's user can.
class Confinement {
 public:
  /// No bounds: whoever gives orders is the user whom the files belong to.
  Confinement() = default;
  /// The working folder, and these.
  static Result<Confinement> to(const std::vector<std::string>& more);

  /// An error if a path of the configuration leads out of the folders, by ".." or a symbolic link,
  /// too. It names the key, the folders and the option that allows another one.
  Status check(const config::Loaded& loaded) const;

 private:
  Status check(const std::string& key, const std::string& path) const;

  std::vector<std::filesystem::path> folders_;  // Empty: no bounds.
};

}  // namespace troupe::apps
