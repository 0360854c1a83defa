#include "apps/head/full_disk.h"

#include <cerrno>
#include <cstring>
#include <utility>

namespace troupe::apps {
namespace {

/// A writer that fails if the disk becomes full while it writes.
class Writer final : public storage::FileWriter {
 public:
  Writer(const FullDisk& disk, std::string path, std::unique_ptr<storage::FileWriter> file)
      : disk_(disk), path_(std::move(path)), file_(std::move(file)) {}

  Status write(std::span<const std::byte> bytes) override {
    if (auto room = disk_.room_for(path_); !room) return room;
    return file_->write(bytes);
  }
  Status sync() override { return file_->sync(); }
  Status close() override { return file_->close(); }

 private:
  const FullDisk& disk_;
  std::string path_;
  std::unique_ptr<storage::FileWriter> file_;
};

}  // namespace

Status FullDisk::room_for(const std::string& path) const {
  if (env_.now() >= full_until_.load()) return Done{};
  return Error{path + ": cannot be written: " + std::strerror(ENOSPC) + " (a drill)"};
}

Result<std::unique_ptr<storage::FileWriter>> FullDisk::create(const std::string& path) {
  if (auto room = room_for(path); !room) return room.error();
  return watched(path, files_.create(path));
}

Result<std::unique_ptr<storage::FileWriter>> FullDisk::append(const std::string& path) {
  if (auto room = room_for(path); !room) return room.error();
  return watched(path, files_.append(path));
}

Result<std::unique_ptr<storage::FileWriter>> FullDisk::watched(
    const std::string& path, Result<std::unique_ptr<storage::FileWriter>> file) const {
  if (!file) return file;
  return std::unique_ptr<storage::FileWriter>(
      std::make_unique<Writer>(*this, path, std::move(*file)));
}

Status FullDisk::make_directory(const std::string& path) {
  if (auto room = room_for(path); !room) return room;
  return files_.make_directory(path);
}

Result<std::uint64_t> FullDisk::free_space(const std::string& path) {
  if (!room_for(path)) return std::uint64_t{0};
  return files_.free_space(path);
}

}  // namespace troupe::apps
