#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

struct evp_cipher_ctx_st;

namespace troupe::transport {

/// The ciphers for tensors that leave the machine. All are authenticated encryption.
enum class Cipher : std::uint32_t {
  chacha20_poly1305 = 1,
  aes256_gcm = 2,
};

/// Returns the sum of the ciphers that this end offers. It offers AES-256-GCM only if the processor
/// has instructions for it; without them ChaCha20-Poly1305 is faster.
std::uint32_t ciphers_here();

/// A secret of 32 bytes that is wiped on destruction.
class SecretKey {
 public:
  SecretKey() = default;
  SecretKey(const SecretKey&) = default;
  SecretKey& operator=(const SecretKey&) = default;
  ~SecretKey();

  unsigned char* data() { return bytes_.data(); }
  const unsigned char* data() const { return bytes_.data(); }
  static constexpr std::size_t size() { return 32; }

 private:
  std::array<unsigned char, 32> bytes_{};
};

/// The authentication tag that follows each record.
using SealTag = std::array<std::byte, 16>;
constexpr std::size_t seal_tag_bytes = sizeof(SealTag);

/// The parameters that both ends of one direction of a channel share.
struct SealTerms {
  Cipher cipher = Cipher::chacha20_poly1305;
  SecretKey key;
  /// After this many records both ends replace the key by its hash, so that an attacker who reads a
  /// process's memory later cannot decrypt older records. It also keeps the data per key far below
  /// the limit of AES-GCM (2^20 records of 128 KiB are 128 GiB).
  std::uint64_t records_per_key = std::uint64_t{1} << 20;
};

/// One end of one direction of an encrypted channel: it seals or opens records in order. A record's
/// number is its nonce, so no nonce repeats under a key, and a record that is repeated, missing,
/// reordered or from another direction does not open. One thread at a time may use it. OpenSSL's
/// libcrypto encrypts three to four times as fast as libsodium 1.0.18 on a processor with AVX-512.
class RecordSeal {
 public:
  explicit RecordSeal(const SealTerms& terms);

  /// Encrypts `plain` into `sealed` and returns the record's tag. `sealed` has the same length; it
  /// is either the same memory or does not overlap.
  SealTag seal(std::span<const std::byte> plain, std::byte* sealed);

  /// Decrypts a record in place. Returns false if it is not the next record that the other end
  /// sealed; then its bytes are undefined and no further record can be opened.
  [[nodiscard]] bool open(std::span<std::byte> record, const SealTag& tag);

 private:
  using Nonce = std::array<unsigned char, 12>;
  struct FreeContext {
    void operator()(evp_cipher_ctx_st* context) const;
  };

  void begin_key();
  Nonce next_nonce();

  SealTerms terms_;
  std::unique_ptr<evp_cipher_ctx_st, FreeContext> context_;  // Contains the expanded key.
  std::uint64_t number_ = 0;                                 // The next record under this key.
};

}  // namespace troupe::transport
