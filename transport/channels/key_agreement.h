#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/result.h"
#include "transport/channels/frame.h"
#include "transport/channels/record_seal.h"
#include "transport/keys.h"

/// How the two ends of a TCP channel agree on keys that nobody else knows.
///
/// The head tells each process the public key of each other one (`Prepare`). The sender makes a key
/// pair for this connection alone and sends its public half with the hello; the receiver answers
/// with one of its own. The keys of the channel are hashes of four products of X25519: of both
/// lasting keys, of each lasting key with the other end's new one, and of both new ones. So each
/// end proves that it has its lasting secret, and who learns a lasting secret later cannot read
/// what was recorded. All that both have said goes into the hashes: an end that was told something
/// else than the other one has said gets other keys. The order of the products is that of the
/// pattern KK of the Noise protocol framework (https://noiseprotocol.org/noise.html, section 7.5).
namespace troupe::transport {

/// Who the ends of a channel are: CURVE keys, as key files have them.
struct ChannelKeys {
  KeyPair own;
  std::string peer;  // The other end's public key.
};

using PublicKey = std::array<std::byte, 32>;
using KeyProof = std::array<std::byte, 16>;

/// Sender to receiver, behind a hello whose protection is `sealed`.
struct KeyOffer {
  PublicKey ephemeral{};      // Of this connection alone.
  std::uint32_t ciphers = 0;  // The sum of those that the sender has.
  std::uint32_t zero = 0;
  KeyProof proof{};  // That the sender has its secret key and knows the receiver's public one.
};
static_assert(sizeof(KeyOffer) == 56);

/// Receiver to sender, behind an answer that lets it in.
struct KeyAnswer {
  PublicKey ephemeral{};
  Cipher cipher = Cipher::chacha20_poly1305;
  std::uint32_t zero = 0;
  KeyProof proof{};
};
static_assert(sizeof(KeyAnswer) == 56);

/// What an agreement gives both ends.
struct SessionTerms {
  SealTerms forth;  // From the sender to the receiver,
  SealTerms back;   // and from the receiver to the sender.
};

/// The chain of hashes from which both ends take their keys.
struct KeyChain {
  SecretKey key;
  SecretKey transcript;
};

/// The sender's part of an agreement.
class KeyAsker {
 public:
  /// An error if a key is none.
  static Result<KeyAsker> begin(const ChannelKeys& keys, const Hello& hello);

  const KeyOffer& offer() const { return offer_; }
  /// An error if the answer does not come from the owner of the peer's key.
  Result<SessionTerms> finish(const KeyAnswer& answer) const;

 private:
  KeyAsker() = default;

  SecretKey own_, ephemeral_;
  KeyOffer offer_;
  KeyChain chain_;
};

/// The receiver's part.
struct Agreement {
  KeyAnswer answer;
  SessionTerms terms;
};
/// An error if the offer does not come from the owner of the peer's key.
Result<Agreement> agree(const ChannelKeys& keys, const Hello& hello, const KeyOffer& offer);

}  // namespace troupe::transport
