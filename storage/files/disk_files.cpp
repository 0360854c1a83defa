#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "storage/files/files.h"

namespace troupe::storage {
namespace {

/// Below this size a copy is cheaper than a mapping.
constexpr std::size_t smallest_mapped = std::size_t{64} << 10;

Error system_error(const std::string& path, const std::string& doing) {
  return {path + ": cannot " + doing + ": " + std::generic_category().message(errno)};
}

/// An owned file descriptor.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const { return number_; }
  bool open() const { return number_ >= 0; }
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

class DiskWriter final : public FileWriter {
 public:
  DiskWriter(std::string path, int descriptor) : path_(std::move(path)), file_(descriptor) {}

  Status write(std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      // Linux writes at most 2 GiB per call.
      const auto piece = std::min(bytes.size(), std::size_t{1} << 30);
      const auto written = ::write(file_.number(), bytes.data(), piece);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return system_error(path_, "write");
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
    return Done{};
  }

  Status sync() override {
    if (::fsync(file_.number()) != 0) return system_error(path_, "sync");
    return Done{};
  }

  Status close() override {
    if (::close(file_.release()) != 0) return system_error(path_, "close");
    return Done{};
  }

 private:
  std::string path_;
  Descriptor file_;
};

Result<Bytes> read_small(const std::string& path, int file, std::size_t size) {
  auto buffer = std::make_shared<std::vector<std::byte>>(size);
  std::size_t have = 0;
  while (have < size) {
    const auto got = ::read(file, buffer->data() + have, size - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error(path, "read");
    if (got == 0) return Error{path + ": became shorter during reading; try again"};
    have += static_cast<std::size_t>(got);
  }
  const std::span<const std::byte> bytes(*buffer);
  return Bytes(std::move(buffer), bytes);
}

class DiskReader final : public FileReader {
 public:
  DiskReader(std::string path, Descriptor file, std::uint64_t size)
      : path_(std::move(path)), file_(std::move(file)), size_(size) {}

  std::uint64_t size() const override { return size_; }

  Status read(std::uint64_t at, std::span<std::byte> into) const override {
    while (!into.empty()) {
      const auto got = ::pread(file_.number(), into.data(), into.size(), static_cast<off_t>(at));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return system_error(path_, "read");
      if (got == 0) return Error{path_ + ": became shorter during reading; try again"};
      at += static_cast<std::uint64_t>(got);
      into = into.subspan(static_cast<std::size_t>(got));
    }
    return Done{};
  }

 private:
  std::string path_;
  Descriptor file_;
  std::uint64_t size_;
};

class DiskLock final : public FileLock {
 public:
  explicit DiskLock(Descriptor file) : file_(std::move(file)) {}

 private:
  Descriptor file_;
};

/// A mapped file. It keeps the file open.
class Mapping {
 public:
  static Result<Bytes> of(const std::string& path, Descriptor file, const struct stat& facts) {
    const auto size = static_cast<std::size_t>(facts.st_size);
    void* memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number(), 0);
    if (memory == MAP_FAILED) return system_error(path, "map");
    auto mapping = std::make_shared<const Mapping>(path, std::move(file), facts, memory);
    return Bytes(mapping, {static_cast<const std::byte*>(memory), size},
                 [mapping] { return mapping->unchanged(); });
  }

  Mapping(std::string path, Descriptor file, const struct stat& facts, void* memory)
      : path_(std::move(path)), file_(std::move(file)), facts_(facts), memory_(memory) {}
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() { ::munmap(memory_, static_cast<std::size_t>(facts_.st_size)); }

  Status unchanged() const {
    struct stat now {};
    if (::fstat(file_.number(), &now) != 0) return system_error(path_, "inspect");
    if (now.st_size == facts_.st_size && now.st_mtim.tv_sec == facts_.st_mtim.tv_sec &&
        now.st_mtim.tv_nsec == facts_.st_mtim.tv_nsec)
      return Done{};
    const std::string sizes = now.st_size == facts_.st_size
                                  ? "its " + std::to_string(now.st_size) + " bytes were written to"
                                  : "it had " + std::to_string(facts_.st_size) + " bytes and has " +
                                        std::to_string(now.st_size);
    return Error{path_ + ": changed while in use: " + sizes +
                 "; restore the file, or start the run again"};
  }

 private:
  std::string path_;
  Descriptor file_;
  struct stat facts_;
  void* memory_;
};

class DiskFiles final : public Files {
 public:
  Result<Bytes> read(const std::string& path) override {
    struct stat facts {};
    auto file = open_regular(path, facts);
    if (!file) return file.error();
    const auto size = static_cast<std::size_t>(facts.st_size);
    return size < smallest_mapped ? read_small(path, file->number(), size)
                                  : Mapping::of(path, std::move(*file), facts);
  }

  Result<std::unique_ptr<FileReader>> open(const std::string& path) override {
    struct stat facts {};
    auto file = open_regular(path, facts);
    if (!file) return file.error();
    return std::unique_ptr<FileReader>(std::make_unique<DiskReader>(
        path, std::move(*file), static_cast<std::uint64_t>(facts.st_size)));
  }

  Result<DirectoryEntry> inspect(const std::string& path) override {
    struct stat facts {};
    if (::stat(path.c_str(), &facts) != 0) return system_error(path, "inspect");
    return entry(std::string(name_of(path)), facts);
  }

  Existence exists(const std::string& path) override {
    struct stat facts {};
    if (::stat(path.c_str(), &facts) == 0) return true;
    if (errno == ENOENT || errno == ENOTDIR) return false;
    return system_error(path, "tell whether it is there");
  }

  Result<std::unique_ptr<FileWriter>> create(const std::string& path) override {
    auto made = open_writer(path, O_EXCL, "create");
    const std::string parent = parent_of(path);
    if (std::error_code error; !made && !std::filesystem::exists(parent, error) && !error)
      return Error{path + ": cannot create: there is no folder " + parent};
    return made;
  }

  Result<std::unique_ptr<FileWriter>> append(const std::string& path) override {
    return open_writer(path, O_APPEND, "append to");
  }

  Status rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) return system_error(from, "rename to " + to);
    return Done{};
  }

  Status link(const std::string& from, const std::string& to) override {
    if (::link(from.c_str(), to.c_str()) != 0) return system_error(from, "link to " + to);
    return Done{};
  }

  Result<std::unique_ptr<FileLock>> lock(const std::string& path,
                                         std::string_view holder) override {
    Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (!file.open()) return system_error(path, "open");
    // An OFD lock belongs to the open file, so the system releases it however the holder ends.
    struct flock whole {};
    whole.l_type = F_WRLCK;
    if (::fcntl(file.number(), F_OFD_SETLK, &whole) != 0) {
      if (errno == EAGAIN || errno == EACCES) return held_by(path, file.number());
      if (errno != ENOLCK && errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL)
        return system_error(path, "lock");
    }
    // Only people read the holder's text, so a failure to write it does not undo the lock.
    if (::ftruncate(file.number(), 0) == 0)
      if (::pwrite(file.number(), holder.data(), holder.size(), 0) < 0) errno = 0;
    return std::unique_ptr<FileLock>(std::make_unique<DiskLock>(std::move(file)));
  }

  Status remove(const std::string& path) override {
    if (std::remove(path.c_str()) != 0) return system_error(path, "remove");
    return Done{};
  }

  Status make_directory(const std::string& path) override {
    struct stat facts {};
    if (::stat(path.c_str(), &facts) == 0) {
      if (S_ISDIR(facts.st_mode)) return Done{};
      return Error{path + ": cannot create the directory: there is a file of that name"};
    }
    const auto parent = parent_of(path);
    if (auto status = make_directory(parent); !status) return status;
    // Another process may have created it meanwhile.
    if (::mkdir(path.c_str(), 0777) != 0 && errno != EEXIST)
      return system_error(path, "create the directory");
    return sync_directory(parent);
  }

  Status sync_directory(const std::string& path) override {
    const Descriptor directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!directory.open()) return system_error(path, "open the directory");
    if (::fsync(directory.number()) != 0) return system_error(path, "sync the directory");
    return Done{};
  }

  Result<std::vector<DirectoryEntry>> list(const std::string& directory) override {
    std::error_code why;
    std::vector<DirectoryEntry> entries;
    std::filesystem::directory_iterator at(directory, why);
    for (; !why && at != std::filesystem::directory_iterator(); at.increment(why)) {
      struct stat facts {};
      if (::stat(at->path().c_str(), &facts) != 0) {
        // The entry has disappeared, or it is a dangling link.
        if (errno == ENOENT || errno == ENOTDIR) continue;
        DirectoryEntry unseen{at->path().filename().string(), DirectoryEntry::Kind::unknown};
        unseen.problem = system_error(at->path().string(), "inspect").text;
        entries.push_back(std::move(unseen));
        continue;
      }
      entries.push_back(entry(at->path().filename().string(), facts));
    }
    if (why) return Error{directory + ": cannot list the directory: " + why.message()};
    std::sort(entries.begin(), entries.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
    return entries;
  }

  Result<std::uint64_t> free_space(const std::string& path) override {
    struct statvfs facts {};
    if (::statvfs(path.c_str(), &facts) != 0) return system_error(path, "ask for free space");
    return std::uint64_t{facts.f_bavail} * facts.f_frsize;
  }

 private:
  static Result<Descriptor> open_regular(const std::string& path, struct stat& facts) {
    // O_NONBLOCK, because opening a pipe would wait for its other end.
    Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file.open()) return system_error(path, "open");
    if (::fstat(file.number(), &facts) != 0) return system_error(path, "inspect");
    if (S_ISDIR(facts.st_mode)) return Error{path + ": is a directory; a file was wanted"};
    if (!S_ISREG(facts.st_mode)) return Error{path + ": is a device or a pipe; a file was wanted"};
    return file;
  }
  static Error held_by(const std::string& path, int file) {
    char words[256];
    const auto got = ::pread(file, words, sizeof words, 0);
    const std::string holder(words, got > 0 ? static_cast<std::size_t>(got) : 0);
    return {path + ": is locked by " + (holder.empty() ? "another process" : holder)};
  }
  static Result<std::unique_ptr<FileWriter>> open_writer(const std::string& path, int how,
                                                         const std::string& doing) {
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | how, 0666);
    if (file < 0) return system_error(path, doing);
    return std::unique_ptr<FileWriter>(std::make_unique<DiskWriter>(path, file));
  }
  static DirectoryEntry entry(std::string name, const struct stat& facts) {
    const bool directory = S_ISDIR(facts.st_mode);
    return {std::move(name),
            directory ? DirectoryEntry::Kind::directory : DirectoryEntry::Kind::file,
            directory ? 0 : static_cast<std::uint64_t>(facts.st_size),
            {std::int64_t{facts.st_mtim.tv_sec} * 1'000'000'000 + facts.st_mtim.tv_nsec,
             facts.st_ino, facts.st_dev}};
  }
};

}  // namespace

std::unique_ptr<Files> disk_files() { return std::make_unique<DiskFiles>(); }

}  // namespace troupe::storage
