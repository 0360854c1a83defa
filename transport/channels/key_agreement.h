#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/result.h"
#include "transport/channels/frame.h"
#include "transport/channels/record_seal.h"
#include "transport/keys/keys.h"

/// How the two ends of a TCP channel agree on secret keys.
///
/// The head sends each process the public keys of all other processes (`Prepare`). The sender makes
/// a key pair for this connection only (ephemeral) and sends its public half with the hello; the
/// receiver answers with an ephemeral key of its own. The channel's keys are hashes of four X25519
/// products: static with static key, each static with the other end's ephemeral key, and ephemeral
/// with ephemeral. So each end proves that it has its static secret, and a static secret that leaks
/// later does not decrypt recorded traffic. The hashes cover all messages: if somebody changes one,
/// the ends get different keys. The order of the products follows the pattern KK of the Noise
/// protocol framework (https://noiseprotocol.org/noise.html, section 7.5).
namespace troupe::transport {

/// The CURVE keys of a channel's ends, as key files contain them.
struct ChannelKeys {
  KeyPair own;
  std::string peer;  // The other end's public key.
};

using PublicKey = std::array<std::byte, 32>;
using KeyProof = std::array<std::byte, 16>;

/// Sent by the sender after a hello whose protection is `sealed`.
struct KeyOffer {
  PublicKey ephemeral{};      // For this connection only.
  std::uint32_t ciphers = 0;  // The sum of the ciphers that the sender supports.
  std::uint32_t zero = 0;
  KeyProof proof{};  // Proves the sender's secret key and that it knows the receiver's public key.
};
static_assert(sizeof(KeyOffer) == 56);

/// Sent by the receiver after an answer that admits the sender.
struct KeyAnswer {
  PublicKey ephemeral{};
  Cipher cipher = Cipher::chacha20_poly1305;
  std::uint32_t zero = 0;
  KeyProof proof{};
};
static_assert(sizeof(KeyAnswer) == 56);

/// The result of an agreement, for both ends.
struct SessionTerms {
  SealTerms forth;  // From sender to receiver.
  SealTerms back;   // From receiver to sender.
};

/// The chain of hashes from which both ends derive their keys.
struct KeyChain {
  SecretKey key;
  SecretKey transcript;
};

/// The sender's side of an agreement.
class KeyAsker {
 public:
  /// Fails if a key is malformed.
  static Result<KeyAsker> begin(const ChannelKeys& keys, const Hello& hello);

  const KeyOffer& offer() const { return offer_; }
  /// Fails if the answer does not come from the owner of the peer's key.
  Result<SessionTerms> finish(const KeyAnswer& answer) const;

 private:
  KeyAsker() = default;

  SecretKey own_, ephemeral_;
  KeyOffer offer_;
  KeyChain chain_;
};

/// The receiver's side of an agreement.
struct Agreement {
  KeyAnswer answer;
  SessionTerms terms;
};
/// Fails if the offer does not come from the owner of the peer's key.
Result<Agreement> agree(const ChannelKeys& keys, const Hello& hello, const KeyOffer& offer);

}  // namespace troupe::transport
