#include "transport/channels/record_seal.h"

#include <openssl/evp.h>
#include <sodium.h>
#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include <cassert>
#include <limits>
#include <string_view>

#include "transport/keys/start_sodium.h"

namespace troupe::transport {
namespace {

constexpr std::string_view next_key_context = "the next key of Troupe, 1";

unsigned char* as_bytes_of_c(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }
const unsigned char* as_bytes_of_c(const std::byte* bytes) {
  return reinterpret_cast<const unsigned char*>(bytes);
}

bool processor_has_aes() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul");
#elif defined(__aarch64__)
  const auto has = getauxval(AT_HWCAP);
  return (has & HWCAP_AES) != 0 && (has & HWCAP_PMULL) != 0;
#else
  return false;
#endif
}

/// Returns null if the system's OpenSSL configuration lacks the cipher. The result is never freed.
const EVP_CIPHER* find_cipher(Cipher cipher) {
  static const EVP_CIPHER* const aes = EVP_CIPHER_fetch(nullptr, "AES-256-GCM", nullptr);
  static const EVP_CIPHER* const chacha = EVP_CIPHER_fetch(nullptr, "ChaCha20-Poly1305", nullptr);
  return cipher == Cipher::aes256_gcm ? aes : chacha;
}

/// OpenSSL counts bytes in int; a channel's records are far smaller than its limit.
int as_int(std::size_t size) {
  assert(size <= static_cast<std::size_t>(std::numeric_limits<int>::max()));
  return static_cast<int>(size);
}

}  // namespace

std::uint32_t ciphers_here() {
  const bool has_chacha = find_cipher(Cipher::chacha20_poly1305);
  const bool has_aes = find_cipher(Cipher::aes256_gcm) && (processor_has_aes() || !has_chacha);
  return (has_chacha ? static_cast<std::uint32_t>(Cipher::chacha20_poly1305) : 0) |
         (has_aes ? static_cast<std::uint32_t>(Cipher::aes256_gcm) : 0);
}

SecretKey::~SecretKey() { sodium_memzero(bytes_.data(), bytes_.size()); }

// OpenSSL wipes the key as well.
void RecordSeal::FreeContext::operator()(evp_cipher_ctx_st* context) const {
  EVP_CIPHER_CTX_free(context);
}

RecordSeal::RecordSeal(const SealTerms& terms) : terms_(terms), context_(EVP_CIPHER_CTX_new()) {
  start_sodium();
  assert(context_ && find_cipher(terms.cipher) && "both ends have the cipher that they agreed on");
  begin_key();
}

void RecordSeal::begin_key() {
  number_ = 0;
  const auto* const cipher = find_cipher(terms_.cipher);
  assert(EVP_CIPHER_get_key_length(cipher) == static_cast<int>(SecretKey::size()) &&
         EVP_CIPHER_get_iv_length(cipher) == static_cast<int>(sizeof(Nonce)));
  [[maybe_unused]] const int began =
      EVP_CipherInit_ex(context_.get(), cipher, nullptr, terms_.key.data(), nullptr, -1);
  assert(began == 1);
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
  auto* const context = context_.get();
  SealTag tag;
  unsigned char nothing = 0;
  int done = 0;
  const bool is_sealed =
      EVP_EncryptInit_ex(context, nullptr, nullptr, nullptr, nonce.data()) == 1 &&
      (plain.empty() ||
       EVP_EncryptUpdate(context, as_bytes_of_c(sealed), &done, as_bytes_of_c(plain.data()),
                         as_int(plain.size())) == 1) &&
      EVP_EncryptFinal_ex(context, &nothing, &done) == 1 &&
      EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, as_int(tag.size()), tag.data()) == 1;
  // Neither memory nor input can make these calls fail.
  assert(is_sealed);
  return tag;
}

bool RecordSeal::open(std::span<std::byte> record, const SealTag& tag) {
  const auto nonce = next_nonce();
  auto* const context = context_.get();
  auto* const bytes = as_bytes_of_c(record.data());
  SealTag shown = tag;
  unsigned char nothing = 0;
  int done = 0;
  return EVP_DecryptInit_ex(context, nullptr, nullptr, nullptr, nonce.data()) == 1 &&
         (record.empty() ||
          EVP_DecryptUpdate(context, bytes, &done, bytes, as_int(record.size())) == 1) &&
         EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, as_int(shown.size()), shown.data()) ==
             1 &&
         EVP_DecryptFinal_ex(context, &nothing, &done) == 1;
}

}  // namespace troupe::transport
