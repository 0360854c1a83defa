#include "transport/channels/key_agreement.h"

#include <sodium.h>
#include <zmq.h>

#include <cstring>
#include <span>
#include <string_view>

#include "transport/keys/start_sodium.h"

namespace troupe::transport {
namespace {

static_assert(crypto_scalarmult_BYTES == SecretKey::size());
static_assert(crypto_scalarmult_SCALARBYTES == SecretKey::size());

constexpr std::string_view chain_context = "tensors of Troupe: X25519 KK, BLAKE2b, 1";
constexpr std::string_view forth_context = "sender to receiver";
constexpr std::string_view back_context = "receiver to sender";

std::span<const unsigned char> as_input(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()};
}
std::span<const unsigned char> as_input(std::string_view text) {
  return as_input(std::as_bytes(std::span(text)));
}

/// Decodes the 40 characters of a key into 32 bytes.
bool decode_key(const std::string& text, unsigned char* bytes) {
  return is_key(text) && zmq_z85_decode(bytes, text.c_str()) != nullptr;
}

/// Hashes `what`, which both ends know, into the transcript.
void mix_transcript(KeyChain& chain, std::span<const unsigned char> what) {
  crypto_generichash(chain.transcript.data(), SecretKey::size(), what.data(), what.size(),
                     chain.transcript.data(), SecretKey::size());
}

/// Mixes an X25519 product into the key. Returns false if the peer's public key is one of the few
/// that give the same product for every secret.
bool mix_product(KeyChain& chain, const SecretKey& secret, const unsigned char* public_key) {
  SecretKey product;
  if (crypto_scalarmult(product.data(), secret.data(), public_key) != 0) return false;
  SecretKey next;
  crypto_generichash(next.data(), SecretKey::size(), product.data(), SecretKey::size(),
                     chain.key.data(), SecretKey::size());
  chain.key = next;
  return true;
}

/// Returns a keyed hash of the transcript, which only somebody with the chain's key can make.
KeyProof prove(const KeyChain& chain) {
  KeyProof proof;
  crypto_generichash(reinterpret_cast<unsigned char*>(proof.data()), proof.size(),
                     chain.transcript.data(), SecretKey::size(), chain.key.data(),
                     SecretKey::size());
  return proof;
}

bool proves(const KeyProof& shown, const KeyChain& chain) {
  const auto wanted = prove(chain);
  return sodium_memcmp(shown.data(), wanted.data(), wanted.size()) == 0;
}

SecretKey key_for(const KeyChain& chain, std::string_view context) {
  SecretKey salted, key;
  const auto input = as_input(context);
  crypto_generichash(salted.data(), SecretKey::size(), input.data(), input.size(), chain.key.data(),
                     SecretKey::size());
  crypto_generichash(key.data(), SecretKey::size(), chain.transcript.data(), SecretKey::size(),
                     salted.data(), SecretKey::size());
  return key;
}

SessionTerms terms_of(const KeyChain& chain, Cipher cipher) {
  SessionTerms terms;
  terms.forth.cipher = terms.back.cipher = cipher;
  terms.forth.key = key_for(chain, forth_context);
  terms.back.key = key_for(chain, back_context);
  return terms;
}

/// The static keys of both ends, as bytes.
struct LastingKeys {
  SecretKey own;
  std::array<unsigned char, 32> own_public{};
  std::array<unsigned char, 32> peer{};
};

Result<LastingKeys> read_keys(const ChannelKeys& keys) {
  start_sodium();
  LastingKeys read;
  if (!decode_key(keys.own.secret_key, read.own.data()) ||
      !decode_key(keys.own.public_key, read.own_public.data()))
    return Error{"this end has no CURVE keys, without which no tensors can be encrypted"};
  if (!decode_key(keys.peer, read.peer.data()))
    return Error{"the other end's public key is no CURVE key: found '" + keys.peer +
                 "', wanted 40 characters"};
  return read;
}

KeyChain begin_chain(const Hello& hello, std::span<const unsigned char> sender,
                     std::span<const unsigned char> receiver) {
  KeyChain chain;
  const auto context = as_input(chain_context);
  crypto_generichash(chain.transcript.data(), SecretKey::size(), context.data(), context.size(),
                     nullptr, 0);
  chain.key = chain.transcript;
  mix_transcript(chain, as_input(std::as_bytes(std::span(&hello, 1))));
  mix_transcript(chain, sender);
  mix_transcript(chain, receiver);
  return chain;
}

/// Returns the bytes of an offer or an answer without its proof.
template <class Message>
std::span<const unsigned char> unproved(const Message& message) {
  return as_input(std::as_bytes(std::span(&message, 1))).first(offsetof(Message, proof));
}

SecretKey make_ephemeral(PublicKey& shown) {
  SecretKey secret;
  randombytes_buf(secret.data(), SecretKey::size());
  crypto_scalarmult_base(reinterpret_cast<unsigned char*>(shown.data()), secret.data());
  return secret;
}

const unsigned char* bytes_of_public(const PublicKey& key) {
  return reinterpret_cast<const unsigned char*>(key.data());
}

constexpr auto aes = static_cast<std::uint32_t>(Cipher::aes256_gcm);

}  // namespace

Result<KeyAsker> KeyAsker::begin(const ChannelKeys& keys, const Hello& hello) {
  const auto lasting = read_keys(keys);
  if (!lasting) return lasting.error();
  KeyAsker asker;
  asker.own_ = lasting->own;
  asker.ephemeral_ = make_ephemeral(asker.offer_.ephemeral);
  asker.offer_.ciphers = ciphers_here();
  asker.chain_ = begin_chain(hello, lasting->own_public, lasting->peer);
  mix_transcript(asker.chain_, unproved(asker.offer_));
  if (!mix_product(asker.chain_, asker.ephemeral_, lasting->peer.data()) ||
      !mix_product(asker.chain_, asker.own_, lasting->peer.data()))
    return Error{"the other end's public key '" + keys.peer + "' is no CURVE key"};
  asker.offer_.proof = prove(asker.chain_);
  return asker;
}

Result<SessionTerms> KeyAsker::finish(const KeyAnswer& answer) const {
  const bool is_one =
      answer.cipher == Cipher::chacha20_poly1305 || answer.cipher == Cipher::aes256_gcm;
  if (!is_one || (offer_.ciphers & static_cast<std::uint32_t>(answer.cipher)) == 0 ||
      answer.zero != 0)
    return Error{"chose a cipher that this end does not offer"};
  KeyChain chain = chain_;
  mix_transcript(chain, unproved(answer));
  const auto* const theirs = bytes_of_public(answer.ephemeral);
  if (!mix_product(chain, ephemeral_, theirs) || !mix_product(chain, own_, theirs) ||
      !proves(answer.proof, chain))
    return Error{
        "does not prove that it has the secret of the key that the head has told of it: it is "
        "somebody else, or somebody changes what travels between"};
  return terms_of(chain, answer.cipher);
}

Result<Agreement> agree(const ChannelKeys& keys, const Hello& hello, const KeyOffer& offer) {
  const auto lasting = read_keys(keys);
  if (!lasting) return lasting.error();
  const Error unproved_offer{"a sender does not prove that it has the secret of its key"};
  const auto common = offer.ciphers & ciphers_here();
  if (offer.zero != 0 || common == 0) return Error{"a sender offers no cipher that this end has"};
  auto chain = begin_chain(hello, lasting->peer, lasting->own_public);
  mix_transcript(chain, unproved(offer));
  const auto* const theirs = bytes_of_public(offer.ephemeral);
  if (!mix_product(chain, lasting->own, theirs) ||
      !mix_product(chain, lasting->own, lasting->peer.data()) || !proves(offer.proof, chain))
    return unproved_offer;
  Agreement agreement;
  auto& answer = agreement.answer;
  const auto ephemeral = make_ephemeral(answer.ephemeral);
  answer.cipher = (common & aes) != 0 ? Cipher::aes256_gcm : Cipher::chacha20_poly1305;
  mix_transcript(chain, unproved(answer));
  if (!mix_product(chain, ephemeral, theirs) ||
      !mix_product(chain, ephemeral, lasting->peer.data()))
    return unproved_offer;
  answer.proof = prove(chain);
  agreement.terms = terms_of(chain, answer.cipher);
  return agreement;
}

}  // namespace troupe::transport
