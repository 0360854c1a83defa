#pragma once

#include <map>
#include <mutex>
#include <optional>

#include "storage/files/files.h"

namespace troupe::storage {

/// The faults of a MemoryFiles. It counts calls that change something from 0, and calls that only
/// look (read, inspect, list, exists) separately.
struct FileFaults {
  /// This call and all later ones fail and do nothing, until restart().
  std::optional<std::int64_t> crash_at;
  /// This call alone fails. A failing write still writes half of its bytes. The bytes of a failing
  /// sync never become durable.
  std::optional<std::int64_t> failing_call;
  /// The bytes that the disk can hold. A write beyond them writes what fits and fails.
  std::optional<std::uint64_t> capacity;
  /// This look alone fails: a read, an inspection, a listing or an existence check. A listing with
  /// an even number fails as a whole; one with an odd number reports its first entry as of unknown
  /// kind.
  std::optional<std::int64_t> failing_look = {};
};

/// The unsynced data that a crash leaves. `drawn` decides randomly for each name and each file,
/// because a disk writes them in any order.
struct Survival {
  enum class Entries { lost, kept, drawn };
  enum class Contents { lost, torn, kept, drawn };

  Entries entries = Entries::lost;     // Names that were created, renamed or removed.
  Contents contents = Contents::lost;  // Bytes that were written; torn keeps the first half.
  std::uint64_t seed = 0;
};

/// A file system in memory. In a crash it loses unsynced data, as a real one may.
class MemoryFiles final : public Files {
 public:
  MemoryFiles();
  ~MemoryFiles() override;

  void set_faults(const FileFaults& faults);
  /// Simulates a crash and a restart, without faults from then on. Open writers fail afterwards.
  void restart(const Survival& survival);
  /// Returns how many calls so far changed something.
  std::int64_t calls() const;
  /// Returns how many calls so far only looked.
  std::int64_t looks() const;
  /// Makes a page of a file unreadable, like a bad sector: a read returns an error, and touching it
  /// in mapped bytes raises a signal.
  void spoil_page(const std::string& path, std::uint64_t byte);
  /// Forgets all locks, as a network file system does when its server is replaced.
  void forget_locks();
  /// Returns whether the whole file would survive a crash.
  bool is_durable(const std::string& path) const;
  /// Returns the bytes of a file that would survive a crash for sure.
  std::string durable_part(const std::string& path) const;
  /// Flips one bit, as an ageing disk does. `byte` must lie within the file.
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

  /// Counts a call. Returns an error if the call fails or comes after a crash.
  Status enter(const std::string& path);
  /// Counts a look. Returns an error if it is the failing one.
  Status look(const std::string& path);
  static DirectoryEntry entry(const std::string& path, const FilePtr& file);
  Status rename_directory(const std::string& from, const std::string& to);
  std::uint64_t bytes_in_use() const;
  /// Removes entries whose directory does not exist.
  static void drop_orphans(std::map<std::string, FilePtr>& entries);

  mutable std::mutex mutex_;
  FileFaults faults_;
  std::int64_t calls_ = 0;
  std::int64_t looks_ = 0;
  std::int64_t restarts_ = 0;
  std::uint64_t files_made_ = 0;
  std::map<std::string, std::string> locks_;  // The holders by path.
  std::int64_t lock_lives_ = 0;               // How often all locks were forgotten.
  bool crashed_ = false;
  bool has_failed_ = false;  // The newest call failed as planned.
  // Entries as seen now, and as a crash would leave them. A null file is a directory.
  std::map<std::string, FilePtr> entries_;
  std::map<std::string, FilePtr> durable_entries_;
};

}  // namespace troupe::storage
