#include "transport/control/term_seal.h"

#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <system_error>

#include "transport/keys/start_sodium.h"

namespace troupe::transport {
namespace {

static_assert(crypto_auth_KEYBYTES == 32 && crypto_auth_BYTES == 32);

constexpr std::string_view context = "troupe term 1";

/// Reads a key. Returns false if the file is incomplete.
bool read_key(int file, unsigned char* key, std::size_t size) {
  return ::pread(file, key, size, 0) == static_cast<ssize_t>(size);
}

}  // namespace

TermSeal::TermSeal() {
  start_sodium();
  randombytes_buf(key_.data(), key_.size());
}

TermSeal TermSeal::of_key(std::string_view secret_key) {
  start_sodium();
  Key key{};
  crypto_generichash(key.data(), key.size(),
                     reinterpret_cast<const unsigned char*>(secret_key.data()), secret_key.size(),
                     reinterpret_cast<const unsigned char*>(context.data()), context.size());
  return TermSeal(key);
}

Result<TermSeal> TermSeal::of_file(const std::string& path) {
  const TermSeal fresh;
  Key key = fresh.key_;
  const auto failed = [&](const char* doing) {
    return Error{path + ": cannot " + doing + ": " + std::generic_category().message(errno)};
  };
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  // Link a complete file into place: of two heads that start at once, the first one's file wins.
  const std::string own = path + "." + std::to_string(::getpid());
  const int made = ::open(own.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
  if (made < 0) return failed("write");
  const bool is_written = ::write(made, key.data(), key.size()) == static_cast<ssize_t>(key.size());
  ::close(made);
  const bool is_first = is_written && ::link(own.c_str(), path.c_str()) == 0;
  ::unlink(own.c_str());
  if (is_first) return fresh;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return failed("read");
  struct stat facts {};
  const bool is_known = ::fstat(file, &facts) == 0;
  const bool is_read = read_key(file, key.data(), key.size());
  ::close(file);
  if (!is_known || facts.st_uid != ::geteuid() || (facts.st_mode & 077) != 0)
    return Error{path +
                 ": others than its owner may read or write this secret; remove it, and the "
                 "next head makes a new one"};
  if (!is_read)
    return Error{path +
                 ": holds no secret of 32 bytes; remove it, and the next head makes a new "
                 "one"};
  return TermSeal(key);
}

std::string TermSeal::prove(std::uint64_t term) const {
  unsigned char text[8];
  for (std::size_t i = 0; i < sizeof text; ++i)
    text[i] = static_cast<unsigned char>(term >> (8 * i) & 0xff);
  unsigned char proof[crypto_auth_BYTES];
  crypto_auth(proof, text, sizeof text, key_.data());
  char digits[2 * crypto_auth_BYTES + 1];
  sodium_bin2hex(digits, sizeof digits, proof, sizeof proof);
  return digits;
}

bool TermSeal::proves(std::uint64_t term, std::string_view proof) const {
  const std::string wanted = prove(term);
  return proof.size() == wanted.size() &&
         sodium_memcmp(proof.data(), wanted.data(), wanted.size()) == 0;
}

}  // namespace troupe::transport
