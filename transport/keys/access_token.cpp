#include "transport/keys/access_token.h"

#include <sodium.h>

#include <algorithm>

#include "transport/keys/secret_file.h"
#include "transport/keys/start_sodium.h"

namespace troupe::transport {
namespace {

constexpr std::size_t least_characters = 16;
constexpr std::size_t most_characters = 512;

}  // namespace

Result<AccessToken> AccessToken::read(const std::string& path) {
  auto text = read_secret_file(path, most_characters + 2, "a new token");
  if (!text) return text.error();
  if (text->ends_with('\n')) text->pop_back();
  const bool is_printable = std::ranges::all_of(
      *text, [](char character) { return character > ' ' && character <= '~'; });
  if (text->size() < least_characters || text->size() > most_characters || !is_printable)
    return Error{path +
                 ": wanted one line with a token of 16 to 512 printable characters without spaces; "
                 "openssl rand -hex 32 prints one"};
  start_sodium();
  return AccessToken(std::move(*text));
}

bool AccessToken::is(std::string_view token) const {
  return token.size() == token_.size() &&
         sodium_memcmp(token.data(), token_.data(), token_.size()) == 0;
}

}  // namespace troupe::transport
