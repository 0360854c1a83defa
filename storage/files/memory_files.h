#pragma once

#include <map>
#include <mutex>
#include <optional>

#include "storage/files/files.h"

namespace troupe::storage {

/// What goes wrong with a MemoryFiles. Calls that change something are counted from 0, and calls
/// that only look likewise, by themselves.
struct FileFaults {
  /// This call and all after it do nothing and fail, until restart().
  std::optional<std::int64_t> crash_at;
  /// This call fails, and the next ones do not. Of what a write should have written half is there;
  /// what a sync of a file should have made durable never will be.
  std::optional<std::int64_t> failing_call;
  /// Bytes that the disk holds in all; a write beyond them writes what fits and fails.
  std::optional<std::uint64_t> capacity;
  /// This look fails, and the next ones do not: of a read, an inspection, a listing, or a question
  /// whether a file is there. A listing fails wholly if the number is even; otherwise its first
  /// entry is of an unknown kind.
  std::optional<std::int64_t> failing_look = {};
};

/// What is left, after a crash, of what was not synced. Where it is drawn, it is so for each name
/// and each file by itself, as a disk reaches them in any order.
struct Survival {
  enum class Entries { lost, kept, drawn };
  enum class Contents { lost, torn, kept, drawn };

  Entries entries = Entries::lost;     // Names that were created, renamed or removed.
  Contents contents = Contents::lost;  // Bytes that were written; torn keeps the first half.
  std::uint64_t seed = 0;
};

/// A file system in memory that forgets in a crash what was not synced, as a real one may.
class MemoryFiles final : public Files {
 public:
  MemoryFiles();
  ~MemoryFiles() override;

  void set_faults(const FileFaults& faults);
  /// The machine went down and is up again, without faults. Open writers are dead.
  void restart(const Survival& survival);
  /// Calls so far that change something.
  std::int64_t calls() const;
  /// Calls so far that only look.
  std::int64_t looks() const;
  /// Makes a page of a file unreadable, as a bad sector does: who asks for it gets an error, and
  /// who touches it in mapped bytes dies of a signal.
  void spoil_page(const std::string& path, std::uint64_t byte);
  /// Forgets who holds which lock, as a network file system does whose server was replaced.
  void forget_locks();
  /// Whether a crash would leave all of the file.
  bool is_durable(const std::string& path) const;
  /// Turns one bit over, as an ageing disk does. The file must be that long.
  void flip_bit(const std::string& path, std::uint64_t byte);

  Result<Bytes> read(const std::string& path) override;
  Result<DirectoryEntry> inspect(const std::string& path) override;
  Existence exists(const std::string& path) override;
  Result<std::unique_ptr<FileReader>> open(const std::string& path) override;
  Result<std::unique_ptr<FileWriter>> create(const std::string& path) override;
  Result<std::unique_ptr<FileWriter>> append(const std::string& path) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status link(const std::string& from, const std::string& to) override;
  Result<std::unique_ptr<FileLock>> lock(const std::string& path, std::string_view holder) override;
  Status remove(const std::string& path) override;
  Status make_directory(const std::string& path) override;
  Status sync_directory(const std::string& path) override;
  Result<std::vector<DirectoryEntry>> list(const std::string& directory) override;
  Result<std::uint64_t> free_space(const std::string& path) override;

 private:
  struct File;
  class Writer;
  class Reader;
  class Lock;
  class Mapped;
  using FilePtr = std::shared_ptr<File>;

  /// Counts a call; the error if it comes after the crash.
  Status enter(const std::string& path);
  /// Counts a look; the error if it is the one that fails.
  Status look(const std::string& path);
  static DirectoryEntry entry(const std::string& path, const FilePtr& file);
  std::uint64_t bytes_in_use() const;
  /// Entries whose directory is not there, are not either.
  static void drop_orphans(std::map<std::string, FilePtr>& entries);

  mutable std::mutex mutex_;
  FileFaults faults_;
  std::int64_t calls_ = 0;
  std::int64_t looks_ = 0;
  std::int64_t restarts_ = 0;
  std::uint64_t files_made_ = 0;
  std::map<std::string, std::string> locks_;  // Who holds them.
  std::int64_t lock_lives_ = 0;               // How often they were forgotten.
  bool crashed_ = false;
  bool has_failed_ = false;  // The newest call, as it was to.
  // Null is a directory. What is seen now, and what a crash would leave.
  std::map<std::string, FilePtr> entries_;
  std::map<std::string, FilePtr> durable_entries_;
};

}  // namespace troupe::storage
