#include "storage/data/data_identity.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <set>

namespace troupe::storage {
namespace {

constexpr std::uint64_t read_whole = std::uint64_t{4} << 20;
constexpr std::uint64_t block_bytes = std::uint64_t{16} << 10;
constexpr std::uint64_t blocks = 32;
constexpr std::size_t most_kept = 4;

/// A file system that forwards all calls and records the files read and the folders listed.
class NotingFiles final : public Files {
 public:
  explicit NotingFiles(Files& files) : files_(files) {}

  std::vector<std::string> read_paths;
  std::set<std::string> listed;

  Result<Bytes> read(const std::string& path) override {
    note(path);
    return files_.read(path);
  }
  Result<std::unique_ptr<FileReader>> open(const std::string& path) override {
    note(path);
    return files_.open(path);
  }
  Result<DirectoryEntry> inspect(const std::string& path) override { return files_.inspect(path); }
  Existence exists(const std::string& path) override { return files_.exists(path); }
  Result<std::unique_ptr<FileWriter>> create(const std::string& path) override {
    return files_.create(path);
  }
  Result<std::unique_ptr<FileWriter>> append(const std::string& path) override {
    return files_.append(path);
  }
  Status rename(const std::string& from, const std::string& to) override {
    return files_.rename(from, to);
  }
  Status link(const std::string& from, const std::string& to) override {
    return files_.link(from, to);
  }
  Result<std::unique_ptr<FileLock>> lock(const std::string& path,
                                         std::string_view holder) override {
    return files_.lock(path, holder);
  }
  Status remove(const std::string& path) override { return files_.remove(path); }
  Status make_directory(const std::string& path) override { return files_.make_directory(path); }
  Status sync_directory(const std::string& path) override { return files_.sync_directory(path); }
  Result<std::vector<DirectoryEntry>> list(const std::string& path) override {
    listed.insert(path);
    return files_.list(path);
  }
  Result<std::uint64_t> free_space(const std::string& path) override {
    return files_.free_space(path);
  }

 private:
  void note(const std::string& path) {
    if (std::ranges::find(read_paths, path) == read_paths.end()) read_paths.push_back(path);
  }

  Files& files_;
};

/// The state of a dataset's files when it was opened.
struct Look {
  std::vector<std::pair<std::uint64_t, FileStamp>> files;
  std::vector<std::vector<std::string>> folders;  // The names in each folder.

  friend bool operator==(const Look&, const Look&) = default;
};

Result<Look> look_at_data(Files& files, const std::vector<std::string>& paths,
                          const std::set<std::string>& folders) {
  Look look;
  for (const auto& path : paths) {
    const auto entry = files.inspect(path);
    if (!entry) return entry.error();
    look.files.emplace_back(entry->bytes, entry->stamp);
  }
  for (const auto& folder : folders) {
    const auto entries = files.list(folder);
    if (!entries) return entries.error();
    auto& names = look.folders.emplace_back();
    for (const auto& entry : *entries) names.push_back(entry.name);
  }
  return look;
}

/// A dataset that this process keeps open.
struct KeptData {
  std::string spec;
  DataNeeds needs;
  std::vector<std::string> paths;
  std::set<std::string> folders;
  Look look;
  OpenedData data;
};

std::mutex kept_mutex;
std::deque<KeptData> kept_data;  // The newest last.

std::optional<KeptData> find_kept(const std::string& spec, const DataNeeds& needs) {
  const std::lock_guard lock(kept_mutex);
  for (const auto& kept : kept_data)
    if (kept.spec == spec && kept.needs == needs) return kept;
  return {};
}

void keep_data(KeptData data) {
  const std::lock_guard lock(kept_mutex);
  std::erase_if(kept_data, [&](const KeptData& kept) {
    return kept.spec == data.spec && kept.needs == data.needs;
  });
  kept_data.push_back(std::move(data));
  if (kept_data.size() > most_kept) kept_data.pop_front();
}

}  // namespace

Result<Digest> identity_of(Files& files, const std::string& path) {
  const auto file = files.open(path);
  if (!file) return file.error();
  const auto size = (*file)->size();
  Digester digester;
  const auto size_text = std::to_string(size);
  digester.add(std::as_bytes(std::span(size_text.data(), size_text.size())));
  std::vector<std::byte> buffer(size <= read_whole ? size : block_bytes);
  if (size <= read_whole) {
    if (auto read = (*file)->read(0, buffer); !read) return read.error();
    digester.add(buffer);
    return digester.finish();
  }
  for (std::uint64_t i = 0; i < blocks; ++i) {
    // The last block ends with the file. Divide first, because the product may overflow.
    const auto room = size - block_bytes;
    const auto at = room / (blocks - 1) * i + room % (blocks - 1) * i / (blocks - 1);
    if (auto read = (*file)->read(at, buffer); !read) return read.error();
    digester.add(buffer);
  }
  return digester.finish();
}

Result<OpenedData> open_data(const std::string& spec, const DataNeeds& needs, Files& files) {
  if (const auto kept = find_kept(spec, needs)) {
    const auto look = look_at_data(files, kept->paths, kept->folders);
    if (look && *look == kept->look) return kept->data;
  }
  NotingFiles noting(files);
  auto dataset = open_dataset(spec, needs, noting);
  if (!dataset) return dataset.error();
  OpenedData opened;
  opened.dataset = std::move(*dataset);
  for (const auto& path : noting.read_paths) {
    const auto digest = identity_of(files, path);
    if (!digest) return digest.error();
    opened.files.push_back({path, *digest});
  }
  auto look = look_at_data(files, noting.read_paths, noting.listed);
  if (!look) return look.error();
  if (!opened.files.empty())
    keep_data({spec, needs, noting.read_paths, noting.listed, std::move(*look), opened});
  return opened;
}

}  // namespace troupe::storage
