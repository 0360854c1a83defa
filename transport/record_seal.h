#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace troupe::transport {

/// The ciphers for tensors that leave the machine. Both authenticate what they encrypt.
enum class Cipher : std::uint32_t {
  chacha20_poly1305 = 1,
  aes256_gcm = 2,  // With the processor's own instructions only.
};

/// Whether this processor has the instructions for AES-256-GCM.
bool has_aes();

/// 32 secret bytes. They are wiped when they go out of use.
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

/// What both ends of one direction of a channel share.
struct SealTerms {
  Cipher cipher = Cipher::chacha20_poly1305;
  SecretKey key;
  /// After so many records both ends replace the key by a hash of it: an attacker who reads the
  /// memory of a process later cannot decrypt the older records. It also keeps the amount of data
  /// under one key far below what AES-GCM allows (2^20 records of 128 KiB are 128 GiB).
  std::uint64_t records_per_key = std::uint64_t{1} << 20;
};

/// One direction of an encrypted channel, at one of its ends: seals records, or opens them, in
/// order. The number of a record is its nonce, so that no nonce comes twice with a key, and a
/// record that was repeated, left out, reordered or taken from another direction does not open. One
/// thread at a time.
class RecordSeal {
 public:
  explicit RecordSeal(const SealTerms& terms);
  ~RecordSeal();
  RecordSeal(const RecordSeal&) = delete;
  RecordSeal& operator=(const RecordSeal&) = delete;

  /// Encrypts `plain` into `sealed`, which is as long and is either the same memory or does not
  /// overlap it. Returns the tag of the record.
  SealTag seal(std::span<const std::byte> plain, std::byte* sealed);

  /// Decrypts a record in place. False if it is not the next record that the other end sealed;
  /// its bytes mean nothing then, and nothing more can be opened.
  [[nodiscard]] bool open(std::span<std::byte> record, const SealTag& tag);

 private:
  // As libsodium wants its expanded key.
  struct alignas(16) Schedule {
    std::array<std::byte, 512> bytes;
  };
  using Nonce = std::array<unsigned char, 12>;

  void begin_key();
  Nonce next_nonce();

  SealTerms terms_;
  Schedule schedule_;         // Of AES.
  std::uint64_t number_ = 0;  // Of the next record under this key.
};

}  // namespace troupe::transport
