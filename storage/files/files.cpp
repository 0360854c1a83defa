#include "storage/files/files.h"

#include <vector>

namespace troupe::storage {

Bytes Bytes::copy_of(std::span<const std::byte> bytes) {
  auto copy = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
  const std::span<const std::byte> seen(*copy);
  return {std::move(copy), seen};
}

Bytes Bytes::copy_of(std::string_view text) {
  return copy_of(std::as_bytes(std::span(text.data(), text.size())));
}

std::string parent_of(const std::string& path) {
  const auto slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string_view name_of(std::string_view path) {
  const auto slash = path.find_last_of('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

Result<Bytes> read_into_memory(Files& files, const std::string& path) {
  const auto file = files.open(path);
  if (!file) return file.error();
  auto buffer = std::make_shared<std::vector<std::byte>>((*file)->size());
  if (auto read = (*file)->read(0, *buffer); !read) return read.error();
  const std::span<const std::byte> bytes(*buffer);
  return Bytes(std::move(buffer), bytes);
}

Status remove_if_there(Files& files, const std::string& path) {
  const auto there = files.exists(path);
  if (!there.ok()) return there.error();
  return *there ? files.remove(path) : Status(Done{});
}

Status write_new_file(Files& files, const std::string& path,
                      std::initializer_list<std::span<const std::byte>> pieces) {
  auto file = files.create(path);
  if (!file) return file.error();
  Status status = Done{};
  for (const auto piece : pieces)
    if (status) status = (*file)->write(piece);
  if (status) status = (*file)->sync();
  if (status) status = (*file)->close();
  if (!status) (void)files.remove(path);  // Report the first error.
  return status;
}

Status replace_file(Files& files, const std::string& path, std::span<const std::byte> bytes) {
  const std::string temporary = path + ".new";
  // Remove what a crash may have left under that name.
  if (auto removed = remove_if_there(files, temporary); !removed) return removed;
  if (auto written = write_new_file(files, temporary, {bytes}); !written) return written;
  if (auto renamed = files.rename(temporary, path); !renamed) {
    (void)files.remove(temporary);  // Report the first error.
    return renamed;
  }
  return files.sync_directory(parent_of(path));
}

Status replace_file(Files& files, const std::string& path, std::string_view text) {
  return replace_file(files, path, std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace troupe::storage
