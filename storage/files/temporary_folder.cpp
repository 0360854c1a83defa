#include "storage/files/temporary_folder.h"

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

namespace troupe::storage {

namespace fs = std::filesystem;

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

Result<TemporaryFolder> TemporaryFolder::make() {
  std::error_code error;
  const fs::path parent = fs::temp_directory_path(error);
  if (error)
    return Error{"TMPDIR: wanted a folder for what is needed for a short time: " + error.message()};
  std::string path = (parent / "troupe-XXXXXX").string();
  if (!mkdtemp(path.data()))
    return Error{path + ": cannot make this folder: " + std::strerror(errno)};
  return TemporaryFolder(std::move(path));
}

}  // namespace troupe::storage
