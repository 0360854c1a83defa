#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "simulation/machine/scheduler.h"
#include "storage/files/files.h"
#include "storage/files/memory_files.h"

namespace troupe::simulation {

/// The disk of a simulated machine. It outlives the processes of the machine, which use it by
/// SimulatedFiles, and loses unsynced data in a crash.
class SimulatedDisk {
 public:
  /// A call that changes something.
  struct Call {
    ProcessId process;
    const char* what;  // "write", "sync", "rename", ...
    const std::string& path;
  };

  /// `scheduler` must outlive this object.
  SimulatedDisk(Scheduler& scheduler, std::string name)
      : scheduler_(scheduler), name_(std::move(name)) {}

  const std::string& name() const { return name_; }
  /// The files as seen now. Calls to them come from outside of all processes.
  storage::MemoryFiles& files() { return files_; }

  /// Calls a function before each call that changes something. If the function kills the process,
  /// the call does nothing and returns an error.
  void on_call(std::function<void(const Call&)> hook) { hook_ = std::move(hook); }
  /// The same for somebody who only watches, and who goes on watching if on_call() is used.
  void watch(std::function<void(const Call&)> watcher) { watcher_ = std::move(watcher); }

  /// Sets the bytes that the disk can hold; nothing for no bound.
  void set_capacity(std::optional<std::uint64_t> capacity);
  /// Lets one call fail that changes something: the next one if `after` is 0. A failing write still
  /// writes half of its bytes, and bytes of a failing sync never become durable.
  void fail_call(std::int64_t after);
  /// Lets one call fail that only looks: a read, an inspection, a listing or an existence check.
  void fail_look(std::int64_t after);
  /// Sets how long a call takes that changes something or reads. Each draws its time and stalls the
  /// queue of its task. `only`: a part of the paths of the files that take so long; all others take
  /// no time.
  void set_times(std::chrono::nanoseconds least, std::chrono::nanoseconds most,
                 std::string only = {});
  /// Makes all calls fail for ever.
  void lose();
  bool is_lost() const { return is_lost_; }

  /// Loses unsynced data of a machine that crashed. Draws whether names and contents are lost,
  /// kept, torn, or drawn for each file. All processes of the machine must have ended.
  void crash();
  void crash(const storage::Survival& survival);
  /// Turns over one drawn bit among all bytes of all files below `root`, and returns its file. Does
  /// nothing if they have no bytes.
  std::optional<std::string> flip_bit(const std::string& root);

 private:
  friend class SimulatedFiles;

  Scheduler& scheduler_;
  std::string name_;
  storage::MemoryFiles files_;
  storage::FileFaults faults_;
  std::function<void(const Call&)> hook_, watcher_;
  std::chrono::nanoseconds least_time_{0};
  std::chrono::nanoseconds most_time_{0};
  std::string slow_paths_;  // Empty: all.
  bool is_lost_ = false;
};

/// The disk of a machine as one of its processes uses it. Once the process has ended, calls do
/// nothing and return errors.
class SimulatedFiles final : public storage::Files {
 public:
  /// `disk` must outlive this object.
  SimulatedFiles(SimulatedDisk& disk, ProcessId process) : disk_(disk), process_(process) {}

  Result<storage::Bytes> read(const std::string& path) override;
  Result<storage::DirectoryEntry> inspect(const std::string& path) override;
  storage::Existence exists(const std::string& path) override;
  Result<std::unique_ptr<storage::FileReader>> open(const std::string& path) override;
  Result<std::unique_ptr<storage::FileWriter>> create(const std::string& path) override;
  Result<std::unique_ptr<storage::FileWriter>> append(const std::string& path) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status link(const std::string& from, const std::string& to) override;
  Result<std::unique_ptr<storage::FileLock>> lock(const std::string& path,
                                                  std::string_view holder) override;
  Status remove(const std::string& path) override;
  Status make_directory(const std::string& path) override;
  Status sync_directory(const std::string& path) override;
  Result<std::vector<storage::DirectoryEntry>> list(const std::string& directory) override;
  Result<std::uint64_t> free_space(const std::string& path) override;

 private:
  class Writer;
  class Reader;

  Status look(const std::string& path) const;
  Status change(const char* what, const std::string& path, const std::string& more = {}) const;
  Result<std::unique_ptr<storage::FileWriter>> wrapped(
      const std::string& path, Result<std::unique_ptr<storage::FileWriter>> file) const;

  SimulatedDisk& disk_;
  ProcessId process_;
};

}  // namespace troupe::simulation
