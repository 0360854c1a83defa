#pragma once

#include <string>
#include <utility>

#include "core/result.h"

namespace troupe::storage {

/// A new folder that exists as long as this object. The destructor removes it with its contents.
class TemporaryFolder {
 public:
  static Result<TemporaryFolder> make();
  ~TemporaryFolder();
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryFolder& operator=(TemporaryFolder&& other) noexcept {
    std::swap(path_, other.path_);
    return *this;
  }

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}

  std::string path_;  // Empty after a move.
};

}  // namespace troupe::storage
