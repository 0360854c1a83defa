#include "transport/keys/secret_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <vector>

#include "core/descriptor.h"

namespace troupe::transport {
namespace {

Error file_error(const std::string& path, const std::string& doing) {
  return {path + ": cannot " + doing + ": " + std::generic_category().message(errno)};
}

bool is_own_group(gid_t group) {
  if (group == ::getegid()) return true;
  std::vector<gid_t> groups(static_cast<std::size_t>(std::max(0, ::getgroups(0, nullptr))));
  const int count = ::getgroups(static_cast<int>(groups.size()), groups.data());
  groups.resize(static_cast<std::size_t>(std::max(0, count)));
  return std::ranges::find(groups, group) != groups.end();
}

/// Returns whether only its owner can read a file. Kubernetes mounts the files of a Secret with
/// root as owner, the pod's fsGroup as group and mode 0440: a non-root process reads its key
/// through that group.
bool is_secret(const struct stat& facts) {
  if ((facts.st_mode & (S_IRWXG | S_IRWXO)) == 0) return true;
  const bool group_only_reads = (facts.st_mode & (S_IWGRP | S_IXGRP | S_IRWXO)) == 0;
  return group_only_reads && facts.st_uid == 0 && ::geteuid() != 0 && is_own_group(facts.st_gid);
}

}  // namespace

Result<std::string> read_secret_file(const std::string& path, std::size_t most,
                                     const std::string& another) {
  // O_NONBLOCK: opening a named pipe would otherwise wait for its other end.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return file_error(path, "open");
  struct stat facts {};
  if (::fstat(file.number(), &facts) != 0) return file_error(path, "inspect");
  if (!S_ISREG(facts.st_mode))
    return Error{path + ": is not a file; a file with a secret was wanted"};
  if (!is_secret(facts))
    return Error{path + ": others than its owner may read or write this secret; run: chmod 600 " +
                 path + ", and make " + another + " if somebody may have seen it"};
  std::string text(most, '\0');
  const auto size = ::read(file.number(), text.data(), text.size());
  if (size < 0) return file_error(path, "read");
  text.resize(static_cast<std::size_t>(size));
  return text;
}

}  // namespace troupe::transport
