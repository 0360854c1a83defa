#include "transport/keys/keys.h"

#include <fcntl.h>
#include <unistd.h>
#include <zmq.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <system_error>

#include "core/descriptor.h"
#include "transport/keys/secret_file.h"

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
  constexpr std::size_t most = 1024;
  const auto text = read_secret_file(path, most, "a new pair");
  if (!text) return text.error();
  KeyPair keys{line_of(*text, public_word), line_of(*text, secret_word)};
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
