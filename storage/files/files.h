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

/// Immutable bytes with shared ownership: a mapped file, or a copy in memory.
class Bytes {
 public:
  Bytes() = default;
  /// `keeper` keeps the memory of `bytes` alive.
  Bytes(std::shared_ptr<const void> keeper, std::span<const std::byte> bytes)
      : keeper_(std::move(keeper)), bytes_(bytes) {}
  static Bytes copy_of(std::span<const std::byte> bytes);
  static Bytes copy_of(std::string_view text);

  /// Refers to a mapped file. `unchanged` compares the file with its state at mapping time.
  Bytes(std::shared_ptr<const void> keeper, std::span<const std::byte> bytes,
        std::function<Status()> unchanged)
      : keeper_(std::move(keeper)), bytes_(bytes), unchanged_(std::move(unchanged)) {}

  std::size_t size() const { return bytes_.size(); }
  std::span<const std::byte> span() const { return bytes_; }
  std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
  }

  /// Returns an error if the mapped file's size or time has changed. Call it before each read of a
  /// long-lived mapping: if the file became shorter, reading past its end kills the process. A copy
  /// never changes.
  Status unchanged() const { return unchanged_ ? unchanged_() : Status(Done{}); }

 private:
  std::shared_ptr<const void> keeper_;
  std::span<const std::byte> bytes_;
  std::function<Status()> unchanged_;
};

/// A file that is written at its end. Destroying it closes it.
class FileWriter {
 public:
  virtual ~FileWriter() = default;

  /// Appends all of `bytes`. On failure, some of them may have been appended.
  virtual Status write(std::span<const std::byte> bytes) = 0;
  /// Returns when all written bytes are on the disk. After a failure the file is worthless, even if
  /// a later sync succeeds: the system may have dropped the bytes.
  virtual Status sync() = 0;
  virtual Status close() = 0;
};

/// An open file with random access. Destroying it closes it. Any thread may read.
class FileReader {
 public:
  virtual ~FileReader() = default;

  virtual std::uint64_t size() const = 0;
  /// Fills `into` with the bytes from `at` on. Returns an error if the disk cannot read them, where
  /// mapped bytes would raise a signal.
  virtual Status read(std::uint64_t at, std::span<std::byte> into) const = 0;
};

/// A file lock, held until it is destroyed or its process ends in whatever way.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

/// A summary of a file's state, obtained without reading the file.
struct FileStamp {
  std::int64_t modified = 0;  // Nanoseconds since 1970.
  std::uint64_t inode = 0;
  std::uint64_t device = 0;

  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

/// Whether something exists, or why that is unknown: ask ok(), then *. The conversion to bool is
/// deleted, because it looks like the value but would mean ok().
class Existence : public Result<bool> {
 public:
  using Result<bool>::Result;
  explicit operator bool() const = delete;
};

struct DirectoryEntry {
  enum class Kind { file, directory, unknown };

  std::string name;
  Kind kind = Kind::file;
  std::uint64_t bytes = 0;   // For files only.
  FileStamp stamp = {};      // For files only.
  std::string problem = {};  // Why an entry of unknown kind could not be inspected.
};

/// The file system as storage uses it. Tests substitute another one. Any thread may call. Every
/// error names the path.
class Files {
 public:
  virtual ~Files() = default;

  /// Returns the whole file. Maps a large one, which nobody may shorten while it is in use.
  virtual Result<Bytes> read(const std::string& path) = 0;
  virtual Result<DirectoryEntry> inspect(const std::string& path) = 0;
  /// Returns false only if the system reports that the name does not exist. If the system cannot
  /// tell, returns an error: the file may exist.
  virtual Existence exists(const std::string& path) = 0;
  virtual Result<std::unique_ptr<FileReader>> open(const std::string& path) = 0;

  /// Creates a new file. An existing one is an error.
  virtual Result<std::unique_ptr<FileWriter>> create(const std::string& path) = 0;
  /// Opens a file for appending. Creates it if it is missing.
  virtual Result<std::unique_ptr<FileWriter>> append(const std::string& path) = 0;
  /// Renames a file or a directory atomically. Replaces a file at `to` by a file.
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  /// Gives a file a second name atomically. An existing name is an error.
  virtual Status link(const std::string& from, const std::string& to) = 0;
  /// Locks a file, created if it is missing, and writes `holder` into it. If the lock is taken, the
  /// error quotes what its holder wrote. On a file system without locks, returns a lock that
  /// excludes nobody.
  virtual Result<std::unique_ptr<FileLock>> lock(const std::string& path,
                                                 std::string_view holder) = 0;
  /// Removes a file or an empty directory.
  virtual Status remove(const std::string& path) = 0;

  /// Creates a directory and its parents durably. An existing one is no error and is not synced.
  virtual Status make_directory(const std::string& path) = 0;
  /// Returns when creations, renames and removals in the directory are on the disk.
  virtual Status sync_directory(const std::string& path) = 0;
  /// Lists a directory, sorted by name. An entry that cannot be inspected has an unknown kind.
  virtual Result<std::vector<DirectoryEntry>> list(const std::string& directory) = 0;
  /// Returns the bytes that can still be written below the path.
  virtual Result<std::uint64_t> free_space(const std::string& path) = 0;
};

/// Returns the file system of this machine.
std::unique_ptr<Files> disk_files();

/// Returns "a/b" for "a/b/c", "." for "c".
std::string parent_of(const std::string& path);
/// Returns "c" for "a/b/c".
std::string_view name_of(std::string_view path);

/// Reads a whole file into memory of its own. A page that the disk cannot read is an error here; in
/// the mapped bytes of Files::read() it is a signal.
Result<Bytes> read_into_memory(Files& files, const std::string& path);

/// Removes a file if it exists.
Status remove_if_there(Files& files, const std::string& path);

/// Writes and syncs a new file. Leaves no file after a failure.
Status write_new_file(Files& files, const std::string& path,
                      std::initializer_list<std::span<const std::byte>> pieces);

/// Writes a file so that a crash at any moment leaves the old file or the new one, whole.
Status replace_file(Files& files, const std::string& path, std::span<const std::byte> bytes);
Status replace_file(Files& files, const std::string& path, std::string_view text);

}  // namespace troupe::storage
