#include "storage/files/memory_files.h"

#include <sys/mman.h>

#include <algorithm>
#include <cassert>
#include <random>
#include <set>

namespace troupe::storage {
namespace {

constexpr std::uint64_t page_bytes = 4096;
constexpr const char* disk_error = "Input/output error";

}  // namespace

struct MemoryFiles::File {
  std::vector<std::byte> contents;
  std::size_t durable = 0;  // Bytes that survive a crash. Files only grow.
  enum class Health { good, lost } health = Health::good;  // lost: no sync helps before a restart.
  std::set<std::uint64_t> bad_pages = {};
  FileStamp stamp = {};

  bool can_read(std::uint64_t at, std::uint64_t count) const {
    const auto bad = bad_pages.lower_bound(at / page_bytes);
    return count == 0 || bad == bad_pages.end() || *bad > (at + count - 1) / page_bytes;
  }
};

/// Mapped bytes: touching an unreadable page raises a signal.
class MemoryFiles::Mapped {
 public:
  static Bytes of(const File& file) {
    const auto size = (file.contents.size() + page_bytes - 1) / page_bytes * page_bytes;
    void* memory =
        ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert(memory != MAP_FAILED);
    auto mapped = std::make_shared<const Mapped>(memory, size);
    std::copy(file.contents.begin(), file.contents.end(), static_cast<std::byte*>(memory));
    for (const auto page : file.bad_pages)
      (void)::mprotect(static_cast<std::byte*>(memory) + page * page_bytes, page_bytes, PROT_NONE);
    return Bytes(mapped, {static_cast<const std::byte*>(memory), file.contents.size()});
  }

  Mapped(void* memory, std::size_t size) : memory_(memory), size_(size) {}
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  ~Mapped() { ::munmap(memory_, size_); }

 private:
  void* memory_;
  std::size_t size_;
};

class MemoryFiles::Reader final : public FileReader {
 public:
  Reader(MemoryFiles& files, std::string path, FilePtr file)
      : files_(files),
        path_(std::move(path)),
        file_(std::move(file)),
        size_(file_->contents.size()) {}

  std::uint64_t size() const override { return size_; }

  Status read(std::uint64_t at, std::span<std::byte> into) const override {
    const std::lock_guard lock(files_.mutex_);
    if (auto looked = files_.look(path_); !looked) return looked;
    if (at + into.size() > file_->contents.size())
      return Error{path_ + ": became shorter during reading; try again"};
    if (!file_->can_read(at, into.size())) return Error{path_ + ": cannot read: " + disk_error};
    std::copy_n(file_->contents.begin() + static_cast<std::ptrdiff_t>(at), into.size(),
                into.begin());
    return Done{};
  }

 private:
  MemoryFiles& files_;
  std::string path_;
  FilePtr file_;
  std::uint64_t size_;
};

class MemoryFiles::Lock final : public FileLock {
 public:
  Lock(MemoryFiles& files, std::string path)
      : files_(files), path_(std::move(path)), life_(files.lock_lives_) {}
  ~Lock() override {
    const std::lock_guard lock(files_.mutex_);
    if (files_.lock_lives_ == life_) files_.locks_.erase(path_);
  }

 private:
  MemoryFiles& files_;
  std::string path_;
  std::int64_t life_;
};

class MemoryFiles::Writer final : public FileWriter {
 public:
  Writer(MemoryFiles& files, std::string path, FilePtr file)
      : files_(files), path_(std::move(path)), file_(std::move(file)), life_(files.restarts_) {}

  Status write(std::span<const std::byte> bytes) override {
    const std::lock_guard lock(files_.mutex_);
    auto fits = bytes.size();
    const Status entered = enter();
    if (!entered && files_.has_failed_) fits /= 2;
    if (!entered && !files_.has_failed_) return entered;
    if (const auto capacity = files_.faults_.capacity) {
      const auto used = files_.bytes_in_use();
      fits = std::min<std::uint64_t>(fits, *capacity > used ? *capacity - used : 0);
    }
    ++file_->stamp.modified;
    file_->contents.insert(file_->contents.end(), bytes.begin(),
                           bytes.begin() + static_cast<std::ptrdiff_t>(fits));
    if (!entered) return entered;
    if (fits < bytes.size()) return Error{path_ + ": cannot write: No space left on device"};
    return Done{};
  }

  Status sync() override {
    const std::lock_guard lock(files_.mutex_);
    if (auto status = enter(); !status) {
      if (files_.has_failed_) file_->health = File::Health::lost;
      return status;
    }
    if (file_->health == File::Health::good) file_->durable = file_->contents.size();
    return Done{};
  }

  Status close() override {
    const std::lock_guard lock(files_.mutex_);
    return enter();
  }

 private:
  Status enter() {
    files_.has_failed_ = false;
    if (files_.restarts_ != life_) return Error{path_ + ": was opened before a crash"};
    return files_.enter(path_);
  }

  MemoryFiles& files_;
  std::string path_;
  FilePtr file_;
  std::int64_t life_;
};

MemoryFiles::MemoryFiles() {
  entries_["."] = nullptr;
  entries_["/"] = nullptr;
  durable_entries_ = entries_;
}

MemoryFiles::~MemoryFiles() = default;

void MemoryFiles::set_faults(const FileFaults& faults) {
  const std::lock_guard lock(mutex_);
  faults_ = faults;
}

void MemoryFiles::restart(const Survival& survival) {
  const std::lock_guard lock(mutex_);
  std::mt19937_64 random(survival.seed);
  switch (survival.entries) {
    case Survival::Entries::lost:
      entries_ = durable_entries_;
      break;
    case Survival::Entries::kept:
      break;
    case Survival::Entries::drawn: {
      std::set<std::string> paths;
      for (const auto& entry : entries_) paths.insert(entry.first);
      for (const auto& entry : durable_entries_) paths.insert(entry.first);
      for (const auto& path : paths) {
        if (random() % 2 == 0) continue;
        const auto durable = durable_entries_.find(path);
        if (durable == durable_entries_.end())
          entries_.erase(path);
        else
          entries_[path] = durable->second;
      }
      drop_orphans(entries_);
      break;
    }
  }
  for (const auto& [path, file] : entries_) {
    if (!file) continue;
    auto left = file->durable;
    switch (survival.contents) {
      case Survival::Contents::lost:
        break;
      case Survival::Contents::torn:
        left += (file->contents.size() - left) / 2;
        break;
      case Survival::Contents::kept:
        left = file->contents.size();
        break;
      case Survival::Contents::drawn:
        left += random() % (file->contents.size() - left + 1);
        break;
    }
    if (file->health == File::Health::lost) left = file->durable;
    file->health = File::Health::good;
    file->contents.resize(left);
    file->durable = left;
  }
  durable_entries_ = entries_;
  faults_ = {};
  crashed_ = false;
  locks_.clear();
  ++lock_lives_;
  ++restarts_;
}

std::int64_t MemoryFiles::calls() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}

std::int64_t MemoryFiles::looks() const {
  const std::lock_guard lock(mutex_);
  return looks_;
}

void MemoryFiles::spoil_page(const std::string& path, std::uint64_t byte) {
  const std::lock_guard lock(mutex_);
  entries_.at(path)->bad_pages.insert(byte / page_bytes);
}

void MemoryFiles::forget_locks() {
  const std::lock_guard lock(mutex_);
  locks_.clear();
  ++lock_lives_;
}

bool MemoryFiles::is_durable(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  const auto seen = entries_.find(path);
  const auto durable = durable_entries_.find(path);
  return seen != entries_.end() && durable != durable_entries_.end() &&
         seen->second == durable->second &&
         (!seen->second || seen->second->durable == seen->second->contents.size());
}

std::string MemoryFiles::durable_part(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  const auto durable = durable_entries_.find(path);
  if (durable == durable_entries_.end() || !durable->second) return {};
  const auto& file = *durable->second;
  const auto* bytes = reinterpret_cast<const char*>(file.contents.data());
  return {bytes, std::min<std::size_t>(file.durable, file.contents.size())};
}

void MemoryFiles::flip_bit(const std::string& path, std::uint64_t byte) {
  const std::lock_guard lock(mutex_);
  auto& file = entries_.at(path);
  assert(file && byte < file->contents.size());
  const auto durable = durable_entries_.find(path);
  const bool is_durable = durable != durable_entries_.end() && durable->second == file;
  // Copy, so that open readers keep the bytes that they saw.
  file = std::make_shared<File>(*file);
  file->contents[byte] ^= std::byte{1};
  if (is_durable) durable->second = file;
}

Status MemoryFiles::enter(const std::string& path) {
  has_failed_ = false;
  if (crashed_ || faults_.crash_at == calls_) {
    crashed_ = true;
    return Error{path + ": the machine is down"};
  }
  has_failed_ = faults_.failing_call == calls_++;
  if (has_failed_) return Error{path + ": " + disk_error};
  return Done{};
}

Status MemoryFiles::look(const std::string& path) {
  if (faults_.failing_look == looks_++) return Error{path + ": " + disk_error};
  return Done{};
}

std::uint64_t MemoryFiles::bytes_in_use() const {
  std::uint64_t sum = 0;
  for (const auto& [path, file] : entries_)
    if (file) sum += file->contents.size();
  return sum;
}

Result<Bytes> MemoryFiles::read(const std::string& path) {
  const std::lock_guard lock(mutex_);
  if (auto looked = look(path); !looked) return looked.error();
  const auto at = entries_.find(path);
  if (at == entries_.end()) return Error{path + ": cannot open: No such file or directory"};
  if (!at->second) return Error{path + ": is a directory; a file was wanted"};
  return at->second->bad_pages.empty() ? Bytes::copy_of(at->second->contents)
                                       : Mapped::of(*at->second);
}

Result<std::unique_ptr<FileReader>> MemoryFiles::open(const std::string& path) {
  const std::lock_guard lock(mutex_);
  if (auto looked = look(path); !looked) return looked.error();
  const auto at = entries_.find(path);
  if (at == entries_.end()) return Error{path + ": cannot open: No such file or directory"};
  if (!at->second) return Error{path + ": is a directory; a file was wanted"};
  return std::unique_ptr<FileReader>(std::make_unique<Reader>(*this, path, at->second));
}

Result<DirectoryEntry> MemoryFiles::inspect(const std::string& path) {
  const std::lock_guard lock(mutex_);
  if (auto looked = look(path); !looked) return looked.error();
  const auto at = entries_.find(path);
  if (at == entries_.end()) return Error{path + ": cannot inspect: No such file or directory"};
  return entry(path, at->second);
}

DirectoryEntry MemoryFiles::entry(const std::string& path, const FilePtr& file) {
  const std::string name(name_of(path));
  if (!file) return {name, DirectoryEntry::Kind::directory};
  return {name, DirectoryEntry::Kind::file, file->contents.size(), file->stamp};
}

Existence MemoryFiles::exists(const std::string& path) {
  const std::lock_guard lock(mutex_);
  if (auto looked = look(path); !looked) return looked.error();
  return entries_.contains(path);
}

Result<std::unique_ptr<FileWriter>> MemoryFiles::create(const std::string& path) {
  const std::lock_guard lock(mutex_);
  if (auto status = enter(path); !status) return status.error();
  if (entries_.contains(path)) return Error{path + ": cannot create: File exists"};
  const auto parent = entries_.find(parent_of(path));
  if (parent == entries_.end() || parent->second)
    return Error{path + ": cannot create: there is no folder " + parent_of(path)};
  auto file = std::make_shared<File>();
  file->stamp = {1, ++files_made_, 1};
  entries_[path] = file;
  return std::unique_ptr<FileWriter>(std::make_unique<Writer>(*this, path, std::move(file)));
}

Result<std::unique_ptr<FileWriter>> MemoryFiles::append(const std::string& path) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto at = entries_.find(path); at != entries_.end()) {
      if (auto status = enter(path); !status) return status.error();
      if (!at->second) return Error{path + ": is a directory; a file was wanted"};
      return std::unique_ptr<FileWriter>(std::make_unique<Writer>(*this, path, at->second));
    }
  }
  return create(path);
}

Status MemoryFiles::rename(const std::string& from, const std::string& to) {
  const std::lock_guard lock(mutex_);
  if (auto status = enter(from); !status) return status;
  const auto at = entries_.find(from);
  if (at == entries_.end())
    return Error{from + ": cannot rename to " + to + ": No such file or directory"};
  const auto file = at->second;
  if (!file) return rename_directory(from, to);
  entries_.erase(at);
  entries_[to] = file;
  return Done{};
}

/// Renames a directory with all that it holds, which is durable at once.
Status MemoryFiles::rename_directory(const std::string& from, const std::string& to) {
  const auto parent = entries_.find(parent_of(to));
  if (parent == entries_.end() || parent->second)
    return Error{from + ": cannot rename to " + to + ": No such file or directory"};
  if (entries_.contains(to)) return Error{from + ": cannot rename to " + to + ": File exists"};
  for (auto* entries : {&entries_, &durable_entries_}) {
    std::map<std::string, FilePtr> moved;
    std::erase_if(*entries, [&](const auto& entry) {
      const auto& [path, file] = entry;
      if (path != from && !path.starts_with(from + "/")) return false;
      moved.emplace(to + path.substr(from.size()), file);
      return true;
    });
    entries->merge(moved);
  }
  return Done{};
}

Status MemoryFiles::link(const std::string& from, const std::string& to) {
  const std::lock_guard lock(mutex_);
  if (auto status = enter(from); !status) return status;
  const auto at = entries_.find(from);
  if (at == entries_.end() || !at->second)
    return Error{from + ": cannot link to " + to + ": No such file or directory"};
  if (entries_.contains(to)) return Error{from + ": cannot link to " + to + ": File exists"};
  entries_[to] = at->second;
  return Done{};
}

/// Lock state lives outside the lock file, because a restart releases all locks.
Result<std::unique_ptr<FileLock>> MemoryFiles::lock(const std::string& path,
                                                    std::string_view holder) {
  const std::lock_guard lock(mutex_);
  const auto parent = entries_.find(parent_of(path));
  if (parent == entries_.end() || parent->second)
    return Error{path + ": cannot open: No such file or directory"};
  const auto [held, is_new] = locks_.emplace(path, holder);
  if (!is_new) return Error{path + ": is locked by " + held->second};
  if (!entries_.contains(path)) entries_[path] = std::make_shared<File>();
  return std::unique_ptr<FileLock>(std::make_unique<Lock>(*this, path));
}

Status MemoryFiles::remove(const std::string& path) {
  const std::lock_guard lock(mutex_);
  if (auto status = enter(path); !status) return status;
  const auto at = entries_.find(path);
  if (at == entries_.end()) return Error{path + ": cannot remove: No such file or directory"};
  const auto below = entries_.lower_bound(path + "/");
  if (!at->second && below != entries_.end() && below->first.starts_with(path + "/"))
    return Error{path + ": cannot remove: Directory not empty"};
  entries_.erase(at);
  return Done{};
}

Status MemoryFiles::make_directory(const std::string& path) {
  const std::lock_guard lock(mutex_);
  if (auto status = enter(path); !status) return status;
  std::string present = path;
  while (!entries_.contains(present)) present = parent_of(present);
  if (entries_[present])
    return Error{path + ": cannot create the directory: " + present + " is a file"};
  for (std::string at = path; at != present; at = parent_of(at))
    entries_[at] = durable_entries_[at] = nullptr;
  return Done{};
}

Status MemoryFiles::sync_directory(const std::string& path) {
  const std::lock_guard lock(mutex_);
  if (auto status = enter(path); !status) return status;
  if (!entries_.contains(path)) return Error{path + ": cannot open the directory"};
  const auto in_directory = [&](const auto& entry) { return parent_of(entry.first) == path; };
  std::erase_if(durable_entries_, in_directory);
  for (const auto& entry : entries_)
    if (in_directory(entry)) durable_entries_.insert(entry);
  drop_orphans(durable_entries_);
  return Done{};
}

void MemoryFiles::drop_orphans(std::map<std::string, FilePtr>& entries) {
  // A directory sorts before the paths below it.
  for (auto at = entries.begin(); at != entries.end();)
    at = entries.contains(parent_of(at->first)) ? std::next(at) : entries.erase(at);
}

Result<std::vector<DirectoryEntry>> MemoryFiles::list(const std::string& directory) {
  const std::lock_guard lock(mutex_);
  const auto number = looks_;
  const auto looked = look(directory);
  if (!looked && number % 2 == 0) return looked.error();
  const auto at = entries_.find(directory);
  if (at == entries_.end() || at->second)
    return Error{directory + ": cannot list the directory: No such file or directory"};
  std::vector<DirectoryEntry> found;
  for (const auto& [path, file] : entries_) {
    if (path == directory || parent_of(path) != directory) continue;
    found.push_back(entry(path, file));
  }
  if (!looked && !found.empty())
    found.front() = {found.front().name, DirectoryEntry::Kind::unknown, 0, {}, looked.error().text};
  return found;
}

Result<std::uint64_t> MemoryFiles::free_space(const std::string& path) {
  const std::lock_guard lock(mutex_);
  if (!entries_.contains(path)) return Error{path + ": cannot ask for free space"};
  if (!faults_.capacity) return std::uint64_t{1} << 40;
  const auto used = bytes_in_use();
  return *faults_.capacity > used ? *faults_.capacity - used : 0;
}

}  // namespace troupe::storage
