#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace troupe::storage {

/// Bytes that nobody changes, shared by those who hold them: a mapped file, or a copy in memory.
class Bytes {
 public:
  Bytes() = default;
  /// `keeper` keeps the memory of `bytes` alive.
  Bytes(std::shared_ptr<const void> keeper, std::span<const std::byte> bytes)
      : keeper_(std::move(keeper)), bytes_(bytes) {}
  static Bytes copy_of(std::span<const std::byte> bytes);
  static Bytes copy_of(std::string_view text);

  /// Of a mapped file, which `unchanged` can look at again.
  Bytes(std::shared_ptr<const void> keeper, std::span<const std::byte> bytes,
        std::function<Status()> unchanged)
      : keeper_(std::move(keeper)), bytes_(bytes), unchanged_(std::move(unchanged)) {}

  std::size_t size() const { return bytes_.size(); }
  std::span<const std::byte> span() const { return bytes_; }
  std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
  }

  /// Whether the file is as long and as old as when it was mapped. Whoever reads it over a long
  /// time asks before each time: behind the end of a file that became shorter, the system ends the
  /// process. A copy is always unchanged.
  Status unchanged() const { return unchanged_ ? unchanged_() : Status(Done{}); }

 private:
  std::shared_ptr<const void> keeper_;
  std::span<const std::byte> bytes_;
  std::function<Status()> unchanged_;
};

/// A file that is being written, always at its end. Destroying it closes it.
class FileWriter {
 public:
  virtual ~FileWriter() = default;

  /// Appends all of `bytes`, or fails having appended some of them.
  virtual Status write(std::span<const std::byte> bytes) = 0;
  /// Returns when what was written is on the disk. After a failure the file is worthless, even if
  /// another sync should succeed: the system may have thrown the bytes away.
  virtual Status sync() = 0;
  virtual Status close() = 0;
};

struct DirectoryEntry {
  enum class Kind { file, directory };

  std::string name;
  Kind kind = Kind::file;
  std::uint64_t bytes = 0;  // Of a file.
};

/// All that storage asks of a file system; tests put another one in its place. Any thread may call.
/// Every error names the path.
class Files {
 public:
  virtual ~Files() = default;

  /// The whole file; a large one is mapped, and must then not be shortened while it is in use.
  virtual Result<Bytes> read(const std::string& path) = 0;
  virtual Result<DirectoryEntry> inspect(const std::string& path) = 0;
  virtual bool exists(const std::string& path) = 0;

  /// A new file; one that is there already is an error.
  virtual Result<std::unique_ptr<FileWriter>> create(const std::string& path) = 0;
  /// Goes on at the end of a file; a new one where there is none.
  virtual Result<std::unique_ptr<FileWriter>> append(const std::string& path) = 0;
  /// In one step that is seen whole or not at all; replaces a file that is there.
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  /// A file, or an empty directory.
  virtual Status remove(const std::string& path) = 0;

  /// With its parents; they are on the disk when this returns. One that is there already is fine.
  virtual Status make_directory(const std::string& path) = 0;
  /// Returns when what was created, renamed and removed in the directory is on the disk.
  virtual Status sync_directory(const std::string& path) = 0;
  /// By name.
  virtual Result<std::vector<DirectoryEntry>> list(const std::string& directory) = 0;
  /// Bytes that can still be written below the path.
  virtual Result<std::uint64_t> free_space(const std::string& path) = 0;
};

/// The file system of this machine.
std::unique_ptr<Files> disk_files();

/// "a/b" for "a/b/c", "." for "c".
std::string parent_of(const std::string& path);
/// "c" for "a/b/c".
std::string_view name_of(std::string_view path);

/// Writes and syncs a new file; after a failure there is none.
Status write_new_file(Files& files, const std::string& path,
                      std::initializer_list<std::span<const std::byte>> pieces);

/// Writes a file so that a crash at any moment leaves the old one or the new one, whole.
Status replace_file(Files& files, const std::string& path, std::span<const std::byte> bytes);
Status replace_file(Files& files, const std::string& path, std::string_view text);

}  // namespace troupe::storage
