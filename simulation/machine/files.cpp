#include "simulation/machine/files.h"

#include <array>
#include <utility>

namespace troupe::simulation {

using storage::Bytes;
using storage::DirectoryEntry;
using storage::Existence;
using storage::FileLock;
using storage::FileReader;
using storage::FileWriter;
using storage::Survival;

void SimulatedDisk::set_capacity(std::optional<std::uint64_t> capacity) {
  faults_.capacity = capacity;
  files_.set_faults(faults_);
}

void SimulatedDisk::fail_call(std::int64_t after) {
  faults_.failing_call = files_.calls() + after;
  files_.set_faults(faults_);
}

void SimulatedDisk::fail_look(std::int64_t after) {
  faults_.failing_look = files_.looks() + after;
  files_.set_faults(faults_);
}

void SimulatedDisk::set_times(std::chrono::nanoseconds least, std::chrono::nanoseconds most,
                              std::string only) {
  least_time_ = least;
  most_time_ = most;
  slow_paths_ = std::move(only);
}

void SimulatedDisk::lose() {
  scheduler_.trace(name_, "the disk is lost");
  is_lost_ = true;
}

void SimulatedDisk::crash() {
  using Entries = Survival::Entries;
  using Contents = Survival::Contents;
  constexpr std::array entries = {Entries::lost, Entries::kept, Entries::drawn};
  constexpr std::array contents = {Contents::lost, Contents::torn, Contents::kept, Contents::drawn};
  const auto entries_drawn = entries.at(scheduler_.draw(entries.size()));
  const auto contents_drawn = contents.at(scheduler_.draw(contents.size()));
  crash({entries_drawn, contents_drawn, scheduler_.draw_bits()});
}

void SimulatedDisk::crash(const Survival& survival) {
  scheduler_.trace(name_, "the machine crashes");
  files_.restart(survival);
  files_.set_faults(faults_);
}

std::optional<std::string> SimulatedDisk::flip_bit(const std::string& root) {
  struct Found {
    std::string path;
    std::uint64_t bytes;
  };
  std::vector<Found> files;
  std::vector<std::string> folders = {root};
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < folders.size(); ++i) {
    const auto folder = folders[i];
    const auto entries = files_.list(folder);
    if (!entries) continue;
    for (const auto& entry : *entries) {
      const auto path = folder + "/" + entry.name;
      if (entry.kind == DirectoryEntry::Kind::directory) folders.push_back(path);
      if (entry.kind != DirectoryEntry::Kind::file) continue;
      bytes += entry.bytes;
      files.push_back({path, entry.bytes});
    }
  }
  if (bytes == 0) return {};
  auto drawn = scheduler_.draw(bytes);
  std::size_t which = 0;
  for (; drawn >= files[which].bytes; ++which) drawn -= files[which].bytes;
  const auto& path = files[which].path;
  scheduler_.trace(name_, "byte " + std::to_string(drawn) + " of " + path + " changes");
  files_.flip_bit(path, drawn);
  return path;
}

/// A file that is written by a process.
class SimulatedFiles::Writer final : public FileWriter {
 public:
  Writer(const SimulatedFiles& files, std::string path, std::unique_ptr<FileWriter> file)
      : files_(files), path_(std::move(path)), file_(std::move(file)) {}

  Status write(std::span<const std::byte> bytes) override {
    const auto status = files_.change("write", path_, std::to_string(bytes.size()) + " bytes");
    return status ? file_->write(bytes) : status;
  }
  Status sync() override {
    const auto status = files_.change("sync", path_);
    return status ? file_->sync() : status;
  }
  Status close() override {
    const auto status = files_.change("close", path_);
    return status ? file_->close() : status;
  }

 private:
  const SimulatedFiles files_;  // A copy, so that the file may live longer.
  std::string path_;
  std::unique_ptr<FileWriter> file_;
};

class SimulatedFiles::Reader final : public FileReader {
 public:
  Reader(const SimulatedFiles& files, std::string path, std::unique_ptr<FileReader> file)
      : files_(files), path_(std::move(path)), file_(std::move(file)) {}

  std::uint64_t size() const override { return file_->size(); }
  Status read(std::uint64_t at, std::span<std::byte> into) const override {
    const auto status = files_.look(path_);
    return status ? file_->read(at, into) : status;
  }

 private:
  const SimulatedFiles files_;  // A copy, so that the file may live longer.
  std::string path_;
  std::unique_ptr<FileReader> file_;
};

/// Begins a call that changes nothing.
Status SimulatedFiles::look(const std::string& path) const {
  auto& scheduler = disk_.scheduler_;
  if (!scheduler.is_alive(process_)) return Error{path + ": the process has ended"};
  if (disk_.most_time_.count() > 0 && path.find(disk_.slow_paths_) != path.npos)
    scheduler.stall(scheduler.draw_time(disk_.least_time_, disk_.most_time_));
  if (disk_.is_lost_) return Error{path + ": Input/output error"};
  return Done{};
}

/// Begins a call that changes something.
Status SimulatedFiles::change(const char* what, const std::string& path,
                              const std::string& more) const {
  auto& scheduler = disk_.scheduler_;
  if (!scheduler.is_alive(process_)) return Error{path + ": the process has ended"};
  scheduler.trace(disk_.name_, what + (" " + path) + (more.empty() ? "" : ", " + more));
  if (disk_.watcher_) disk_.watcher_({process_, what, path});
  // A copy, because the function may replace itself.
  if (const auto hook = disk_.hook_) hook({process_, what, path});
  // It throws nothing if the function killed the process, since a destructor may have made the
  // call.
  return look(path);
}

Result<Bytes> SimulatedFiles::read(const std::string& path) {
  if (auto status = look(path); !status) return status.error();
  return disk_.files_.read(path);
}

Result<DirectoryEntry> SimulatedFiles::inspect(const std::string& path) {
  if (auto status = look(path); !status) return status.error();
  return disk_.files_.inspect(path);
}

Existence SimulatedFiles::exists(const std::string& path) {
  if (auto status = look(path); !status) return status.error();
  return disk_.files_.exists(path);
}

Result<std::unique_ptr<FileReader>> SimulatedFiles::open(const std::string& path) {
  if (auto status = look(path); !status) return status.error();
  auto file = disk_.files_.open(path);
  if (!file) return file.error();
  return std::unique_ptr<FileReader>(std::make_unique<Reader>(*this, path, std::move(*file)));
}

Result<std::unique_ptr<FileWriter>> SimulatedFiles::wrapped(
    const std::string& path, Result<std::unique_ptr<FileWriter>> file) const {
  if (!file) return file.error();
  return std::unique_ptr<FileWriter>(std::make_unique<Writer>(*this, path, std::move(*file)));
}

Result<std::unique_ptr<FileWriter>> SimulatedFiles::create(const std::string& path) {
  if (auto status = change("create", path); !status) return status.error();
  return wrapped(path, disk_.files_.create(path));
}

Result<std::unique_ptr<FileWriter>> SimulatedFiles::append(const std::string& path) {
  if (auto status = change("append to", path); !status) return status.error();
  return wrapped(path, disk_.files_.append(path));
}

Status SimulatedFiles::rename(const std::string& from, const std::string& to) {
  const auto status = change("rename", from, "to " + to);
  return status ? disk_.files_.rename(from, to) : status;
}

Status SimulatedFiles::link(const std::string& from, const std::string& to) {
  const auto status = change("link", from, "to " + to);
  return status ? disk_.files_.link(from, to) : status;
}

Result<std::unique_ptr<FileLock>> SimulatedFiles::lock(const std::string& path,
                                                       std::string_view holder) {
  if (auto status = change("lock", path); !status) return status.error();
  return disk_.files_.lock(path, holder);
}

Status SimulatedFiles::remove(const std::string& path) {
  const auto status = change("remove", path);
  return status ? disk_.files_.remove(path) : status;
}

Status SimulatedFiles::make_directory(const std::string& path) {
  const auto status = change("make folder", path);
  return status ? disk_.files_.make_directory(path) : status;
}

Status SimulatedFiles::sync_directory(const std::string& path) {
  const auto status = change("sync folder", path);
  return status ? disk_.files_.sync_directory(path) : status;
}

Result<std::vector<DirectoryEntry>> SimulatedFiles::list(const std::string& directory) {
  if (auto status = look(directory); !status) return status.error();
  return disk_.files_.list(directory);
}

Result<std::uint64_t> SimulatedFiles::free_space(const std::string& path) {
  if (auto status = look(path); !status) return status.error();
  return disk_.files_.free_space(path);
}

}  // namespace troupe::simulation
