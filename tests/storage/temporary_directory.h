#pragma once

#include <stdlib.h>

#include <cassert>
#include <filesystem>
#include <string>

/// A directory that is there as long as this object.
class TemporaryDirectory {
 public:
  TemporaryDirectory()
      : path_((std::filesystem::temp_directory_path() / "troupe-test-XXXXXX").string()) {
    const char* made = mkdtemp(path_.data());
    assert(made);
    (void)made;
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};
