#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "core/env.h"
#include "storage/files/files.h"

namespace troupe::apps {

/// A file system that can simulate a full disk for a while, as a drill. While the disk is full,
/// writes fail with the system's error; reads work.
class FullDisk final : public storage::Files {
 public:
  /// Both outlive it.
  FullDisk(Env& env, storage::Files& files) : env_(env), files_(files) {}

  /// Makes the disk full for `time` from now on.
  void fill_for(std::chrono::nanoseconds time) { full_until_ = env_.now() + time; }
  /// Fails while the disk is full.
  Status room_for(const std::string& path) const;

  Result<storage::Bytes> read(const std::string& path) override { return files_.read(path); }
  Result<storage::DirectoryEntry> inspect(const std::string& path) override {
    return files_.inspect(path);
  }
  storage::Existence exists(const std::string& path) override { return files_.exists(path); }
  Result<std::unique_ptr<storage::FileReader>> open(const std::string& path) override {
    return files_.open(path);
  }
  Result<std::unique_ptr<storage::FileWriter>> create(const std::string& path) override;
  Result<std::unique_ptr<storage::FileWriter>> append(const std::string& path) override;
  Status rename(const std::string& from, const std::string& to) override {
    return files_.rename(from, to);
  }
  Status link(const std::string& from, const std::string& to) override {
    if (auto room = room_for(to); !room) return room;
    return files_.link(from, to);
  }
  Result<std::unique_ptr<storage::FileLock>> lock(const std::string& path,
                                                  std::string_view holder) override {
    return files_.lock(path, holder);
  }
  Status remove(const std::string& path) override { return files_.remove(path); }
  Status make_directory(const std::string& path) override;
  Status sync_directory(const std::string& path) override { return files_.sync_directory(path); }
  Result<std::vector<storage::DirectoryEntry>> list(const std::string& directory) override {
    return files_.list(directory);
  }
  Result<std::uint64_t> free_space(const std::string& path) override;

 private:
  Result<std::unique_ptr<storage::FileWriter>> watched(
      const std::string& path, Result<std::unique_ptr<storage::FileWriter>> file) const;

  Env& env_;
  storage::Files& files_;
  std::atomic<Env::Time> full_until_{Env::Time()};
};

}  // namespace troupe::apps
