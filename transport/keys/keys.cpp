#include "transport/keys/keys.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <system_error>
#include <vector>

#include "core/descriptor.h"

namespace troupe::transport {
namespace {

constexpr std::size_t key_length = 40;
constexpr std::string_view public_word = "public ";
constexpr std::string_view secret_word = "secret ";
constexpr std::string_view note =
    "# A key pair of Troupe. Who has the secret can speak as its owner.\n";

Error system_error(const std::string& path, const std::string& doing) {
  return {path + ": cannot " + doing + ": " + std::generic_category().message(errno)};
}

/// Returns the rest of the line that begins with `word`, or an empty text if there is no such line.
std::string line_of(std::string_view text, std::string_view word) {
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    const auto line = text.substr(at, end - at);
    if (line.starts_with(word)) return std::string(line.substr(word.size()));
    at = end + 1;
  }
  return {};
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

Result<KeyPair> make_key_pair() {
  std::array<char, key_length + 1> public_key{};
  std::array<char, key_length + 1> secret_key{};
  if (zmq_curve_keypair(public_key.data(), secret_key.data()) != 0)
    return Error{"cannot make a key pair: this build of ZeroMQ has no CURVE"};
  return KeyPair{public_key.data(), secret_key.data()};
}

bool is_key(std::string_view text) {
  constexpr std::string_view characters =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
  return text.size() == key_length && text.find_first_not_of(characters) == std::string_view::npos;
}

Status write_key_pair(const std::string& path, const KeyPair& keys) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) return system_error(path, "create");
  const std::string text = std::string(note) + std::string(public_word) + keys.public_key + "\n" +
                           std::string(secret_word) + keys.secret_key + "\n";
  // The system writes this few bytes to a new file at once or not at all.
  if (::write(file.number(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      ::fsync(file.number()) != 0) {
    auto error = system_error(path, "write");
    ::unlink(path.c_str());
    return error;
  }
  return Done{};
}

Result<KeyPair> read_key_pair(const std::string& path) {
  // O_NONBLOCK: opening a named pipe would otherwise wait for its other end.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return system_error(path, "open");
  struct stat facts {};
  if (::fstat(file.number(), &facts) != 0) return system_error(path, "inspect");
  if (!S_ISREG(facts.st_mode)) return Error{path + ": is not a file; a key file was wanted"};
  if (!is_secret(facts))
    return Error{path + ": others than its owner may read or write this secret; run: chmod 600 " +
                 path + ", and make a new pair if somebody may have seen it"};
  std::array<char, 1024> buffer{};
  const auto size = ::read(file.number(), buffer.data(), buffer.size());
  if (size < 0) return system_error(path, "read");
  const std::string_view text(buffer.data(), static_cast<std::size_t>(size));

  KeyPair keys{line_of(text, public_word), line_of(text, secret_word)};
  for (const auto& [word, key] :
       {std::pair(public_word, &keys.public_key), std::pair(secret_word, &keys.secret_key)})
    if (!is_key(*key))
      return Error{path + ": wanted a line \"" + std::string(word) +
                   "KEY\" whose key has 40 characters; `troupe keys new` writes such a file"};
  std::array<char, key_length + 1> belongs{};
  if (zmq_curve_public(belongs.data(), keys.secret_key.c_str()) != 0)
    return Error{path + ": this build of ZeroMQ has no CURVE"};
  if (keys.public_key != belongs.data())
    return Error{path + ": the public and the secret key are no pair; make a new one"};
  return keys;
}

}  // namespace troupe::transport
