#include "transport/record_seal.h"

#include <sodium.h>

#include <string_view>

#include "transport/start_sodium.h"

namespace troupe::transport {
namespace {

static_assert(crypto_aead_aes256gcm_KEYBYTES == SecretKey::size());
static_assert(crypto_aead_aes256gcm_ABYTES == seal_tag_bytes);
static_assert(crypto_aead_chacha20poly1305_ietf_KEYBYTES == SecretKey::size());
static_assert(crypto_aead_chacha20poly1305_ietf_ABYTES == seal_tag_bytes);

constexpr std::string_view next_key_context = "troupe next key 1";

unsigned char* as_sodium(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }
const unsigned char* as_sodium(const std::byte* bytes) {
  return reinterpret_cast<const unsigned char*>(bytes);
}

}  // namespace

bool has_aes() {
  start_sodium();
  return crypto_aead_aes256gcm_is_available() == 1;
}

SecretKey::~SecretKey() { sodium_memzero(bytes_.data(), bytes_.size()); }

RecordSeal::RecordSeal(const SealTerms& terms) : terms_(terms) {
  start_sodium();
  begin_key();
}

RecordSeal::~RecordSeal() { sodium_memzero(&schedule_, sizeof schedule_); }

void RecordSeal::begin_key() {
  static_assert(sizeof(crypto_aead_aes256gcm_state) <= sizeof(Schedule));
  static_assert(crypto_aead_aes256gcm_NPUBBYTES == sizeof(Nonce));
  static_assert(crypto_aead_chacha20poly1305_ietf_NPUBBYTES == sizeof(Nonce));
  number_ = 0;
  if (terms_.cipher == Cipher::aes256_gcm)
    crypto_aead_aes256gcm_beforenm(
        reinterpret_cast<crypto_aead_aes256gcm_state*>(schedule_.bytes.data()), terms_.key.data());
}

RecordSeal::Nonce RecordSeal::next_nonce() {
  if (number_ == terms_.records_per_key) {
    SecretKey next;
    crypto_generichash(next.data(), SecretKey::size(),
                       reinterpret_cast<const unsigned char*>(next_key_context.data()),
                       next_key_context.size(), terms_.key.data(), SecretKey::size());
    terms_.key = next;
    begin_key();
  }
  Nonce nonce{};
  for (std::size_t i = 0; i < sizeof number_; ++i)
    nonce[i] = static_cast<unsigned char>(number_ >> (8 * i) & 0xff);
  ++number_;
  return nonce;
}

SealTag RecordSeal::seal(std::span<const std::byte> plain, std::byte* sealed) {
  const auto nonce = next_nonce();
  SealTag tag;
  if (terms_.cipher == Cipher::aes256_gcm)
    crypto_aead_aes256gcm_encrypt_detached_afternm(
        as_sodium(sealed), as_sodium(tag.data()), nullptr, as_sodium(plain.data()), plain.size(),
        nullptr, 0, nullptr, nonce.data(),
        reinterpret_cast<const crypto_aead_aes256gcm_state*>(schedule_.bytes.data()));
  else
    crypto_aead_chacha20poly1305_ietf_encrypt_detached(
        as_sodium(sealed), as_sodium(tag.data()), nullptr, as_sodium(plain.data()), plain.size(),
        nullptr, 0, nullptr, nonce.data(), terms_.key.data());
  return tag;
}

bool RecordSeal::open(std::span<std::byte> record, const SealTag& tag) {
  const auto nonce = next_nonce();
  auto* const bytes = as_sodium(record.data());
  if (terms_.cipher == Cipher::aes256_gcm)
    return crypto_aead_aes256gcm_decrypt_detached_afternm(
               bytes, nullptr, bytes, record.size(), as_sodium(tag.data()), nullptr, 0,
               nonce.data(),
               reinterpret_cast<const crypto_aead_aes256gcm_state*>(schedule_.bytes.data())) == 0;
  return crypto_aead_chacha20poly1305_ietf_decrypt_detached(bytes, nullptr, bytes, record.size(),
                                                            as_sodium(tag.data()), nullptr, 0,
                                                            nonce.data(), terms_.key.data()) == 0;
}

}  // namespace troupe::transport
