#include "transport/channels/key_agreement.h"

#include <cstring>
#include <functional>

#include "catch.h"
#include "ends.h"

using namespace troupe;
using namespace troupe::transport;

namespace {

bool same(const SecretKey& one, const SecretKey& other) {
  return std::memcmp(one.data(), other.data(), SecretKey::size()) == 0;
}

Hello sealed_hello() {
  Hello hello;
  hello.token = 4711;
  hello.protection = Protection::sealed;
  return hello;
}

std::byte* bytes_of(auto& message) { return reinterpret_cast<std::byte*>(&message); }

}  // namespace

TEST_CASE("both ends agree on equal keys and every agreement makes new keys", "[transport]") {
  const auto keys = make_keys_of_two();
  const auto hello = sealed_hello();
  const auto asker = KeyAsker::begin(*keys.sender, hello);
  REQUIRE(asker.ok());
  const auto agreement = agree(*keys.receiver, hello, asker->offer());
  REQUIRE(agreement.ok());
  const auto terms = asker->finish(agreement->answer);
  REQUIRE(terms.ok());
  CHECK(same(terms->forth.key, agreement->terms.forth.key));
  CHECK(same(terms->back.key, agreement->terms.back.key));
  CHECK(terms->forth.cipher == agreement->terms.forth.cipher);
  CHECK(terms->forth.cipher ==
        ((ciphers_here() & 2) != 0 ? Cipher::aes256_gcm : Cipher::chacha20_poly1305));
  CHECK(!same(terms->forth.key, terms->back.key));
  // An attacker who replays the offer cannot compute the keys, and they are new ones anyway.
  const auto again = agree(*keys.receiver, hello, asker->offer());
  REQUIRE(again.ok());
  CHECK(!same(again->terms.forth.key, terms->forth.key));
}

TEST_CASE("two processes with the key of one host can agree too", "[transport]") {
  const auto host = make_key_pair().value();
  const ChannelKeys keys{host, host.public_key};
  const auto asker = KeyAsker::begin(keys, sealed_hello());
  REQUIRE(asker.ok());
  const auto agreement = agree(keys, sealed_hello(), asker->offer());
  REQUIRE(agreement.ok());
  CHECK(asker->finish(agreement->answer).ok());
}

TEST_CASE("an end with another key is refused by the other end", "[transport]") {
  const auto keys = make_keys_of_two();
  const auto hello = sealed_hello();
  const auto stranger = make_key_pair().value();
  SECTION("the sender is a stranger") {
    const auto asker = KeyAsker::begin({stranger, keys.sender->peer}, hello);
    REQUIRE(asker.ok());
    CHECK(!agree(*keys.receiver, hello, asker->offer()).ok());
  }
  SECTION("the sender expects a stranger") {
    const auto asker = KeyAsker::begin({keys.sender->own, stranger.public_key}, hello);
    REQUIRE(asker.ok());
    CHECK(!agree(*keys.receiver, hello, asker->offer()).ok());
  }
  SECTION("a stranger answers, who knows both public keys") {
    const auto asker = KeyAsker::begin(*keys.sender, hello);
    REQUIRE(asker.ok());
    // The stranger can make a well-formed answer to an offer of his own.
    const ChannelKeys his{stranger, keys.sender->own.public_key};
    const auto own = KeyAsker::begin({keys.sender->own, stranger.public_key}, hello);
    const auto agreement = agree(his, hello, own->offer());
    REQUIRE(agreement.ok());
    CHECK(!asker->finish(agreement->answer).ok());
  }
  SECTION("no key at all") {
    CHECK(!KeyAsker::begin({keys.sender->own, "abc"}, hello).ok());
    CHECK(!KeyAsker::begin({{}, keys.sender->peer}, hello).ok());
  }
  SECTION("a key whose products are all the same") {
    // Z85 of 32 zero bytes.
    const auto asker = KeyAsker::begin({keys.sender->own, std::string(40, '0')}, hello);
    CHECK(!asker.ok());
    auto offer = KeyAsker::begin(*keys.sender, hello)->offer();
    offer.ephemeral = {};
    CHECK(!agree(*keys.receiver, hello, offer).ok());
  }
}

TEST_CASE("no byte of an agreement can be changed in transit", "[transport]") {
  const auto keys = make_keys_of_two();
  const auto hello = sealed_hello();
  const auto asker = KeyAsker::begin(*keys.sender, hello);
  REQUIRE(asker.ok());
  for (std::size_t i = 0; i < sizeof hello; ++i) {
    auto other = hello;
    bytes_of(other)[i] ^= std::byte{1};
    CHECK(!agree(*keys.receiver, other, asker->offer()).ok());
  }
  // X25519 ignores the highest bit of a public key; the hash does not.
  for (const auto bit : {std::byte{1}, std::byte{128}})
    for (std::size_t i = 0; i < sizeof(KeyOffer); ++i) {
      auto other = asker->offer();
      bytes_of(other)[i] ^= bit;
      INFO(i);
      CHECK(!agree(*keys.receiver, hello, other).ok());
    }
  const auto agreement = agree(*keys.receiver, hello, asker->offer());
  REQUIRE(agreement.ok());
  for (const auto bit : {std::byte{1}, std::byte{128}})
    for (std::size_t i = 0; i < sizeof(KeyAnswer); ++i) {
      auto other = agreement->answer;
      bytes_of(other)[i] ^= bit;
      INFO(i);
      CHECK(!asker->finish(other).ok());
    }
  CHECK(asker->finish(agreement->answer).ok());
}
