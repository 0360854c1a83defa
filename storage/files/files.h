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

/// An open file of which any part can be read. Destroying it closes it. Any thread may read.
class FileReader {
 public:
  virtual ~FileReader() = default;

  virtual std::uint64_t size() const = 0;
  /// Fills `into` with the bytes from `at` on. Bytes that the disk cannot give are an error, never
  /// a signal as they are in mapped bytes.
  virtual Status read(std::uint64_t at, std::span<std::byte> into) const = 0;
};

/// A lock that its process holds until the lock is destroyed or the process ends, however it ends.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

/// What tells one state of a file from another without reading the file.
struct FileStamp {
  std::int64_t modified = 0;  // Nanoseconds since 1970.
  std::uint64_t inode = 0;
  std::uint64_t device = 0;

  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

/// Whether something is there, or why that cannot be told: ask ok(), then *. It has no shortcut to
/// bool, which would read as the value and mean ok().
class Existence : public Result<bool> {
 public:
  using Result<bool>::Result;
  explicit operator bool() const = delete;
};

struct DirectoryEntry {
  enum class Kind { file, directory, unknown };

  std::string name;
  Kind kind = Kind::file;
  std::uint64_t bytes = 0;   // Of a file.
  FileStamp stamp = {};      // Likewise.
  std::string problem = {};  // Why the kind is unknown: the entry could not be inspected.
};

/// All that storage asks of a file system; tests put another one in its place. Any thread may call.
/// Every error names the path.
class Files {
 public:
  virtual ~Files() = default;

  /// The whole file; a large one is mapped, and must then not be shortened while it is in use.
  virtual Result<Bytes> read(const std::string& path) = 0;
  virtual Result<DirectoryEntry> inspect(const std::string& path) = 0;
  /// False only if the system says that there is nothing of that name. If the system cannot tell,
  /// that is an error, and the file may well be there.
  virtual Existence exists(const std::string& path) = 0;
  virtual Result<std::unique_ptr<FileReader>> open(const std::string& path) = 0;

  /// A new file; one that is there already is an error.
  virtual Result<std::unique_ptr<FileWriter>> create(const std::string& path) = 0;
  /// Goes on at the end of a file; a new one where there is none.
  virtual Result<std::unique_ptr<FileWriter>> append(const std::string& path) = 0;
  /// In one step that is seen whole or not at all; replaces a file that is there.
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  /// Gives a file a second name in one step. A name that is there already is an error.
  virtual Status link(const std::string& from, const std::string& to) = 0;
  /// Locks a file, which is created if it is missing, and writes `holder` into it for whom the
  /// lock is refused. If another lock is held on the file, the error says what its holder wrote. A
  /// file system without locks gives a lock that keeps nobody out.
  virtual Result<std::unique_ptr<FileLock>> lock(const std::string& path,
                                                 std::string_view holder) = 0;
  /// A file, or an empty directory.
  virtual Status remove(const std::string& path) = 0;

  /// With its parents; they are on the disk when this returns. One that is there already is fine.
  virtual Status make_directory(const std::string& path) = 0;
  /// Returns when what was created, renamed and removed in the directory is on the disk.
  virtual Status sync_directory(const std::string& path) = 0;
  /// By name. An entry that cannot be inspected is of an unknown kind.
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

/// All of a file, in memory of its own: a page that the disk cannot give is an error, while in the
/// mapped bytes of Files::read() it is a signal.
Result<Bytes> read_into_memory(Files& files, const std::string& path);

/// Removes a file if it is there.
Status remove_if_there(Files& files, const std::string& path);

/// Writes and syncs a new file; after a failure there is none.
Status write_new_file(Files& files, const std::string& path,
                      std::initializer_list<std::span<const std::byte>> pieces);

/// Writes a file so that a crash at any moment leaves the old one or the new one, whole.
Status replace_file(Files& files, const std::string& path, std::span<const std::byte> bytes);
Status replace_file(Files& files, const std::string& path, std::string_view text);

}  // namespace troupe::storage
