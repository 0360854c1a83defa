#include "transport/channels/record_seal.h"

#include <cstring>
#include <optional>
#include <vector>

#include "catch.h"
#include "core/random.h"

using namespace troupe;
using namespace troupe::transport;

namespace {

using Bytes = std::vector<std::byte>;

Bytes made_bytes(std::size_t size, std::uint64_t seed) {
  const RandomKey key{.seed = seed};
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; i += 16) {
    const auto words = key.words(static_cast<std::uint32_t>(i / 16));
    std::memcpy(bytes.data() + i, words.data(), std::min<std::size_t>(16, size - i));
  }
  return bytes;
}

SealTerms terms(Cipher cipher, std::uint64_t records_per_key = 1000) {
  SealTerms terms;
  terms.cipher = cipher;
  terms.records_per_key = records_per_key;
  for (std::size_t i = 0; i < SecretKey::size(); ++i)
    terms.key.data()[i] = static_cast<unsigned char>(i);
  return terms;
}

struct Record {
  Bytes bytes;
  SealTag tag;
};

Record seal(RecordSeal& by, const Bytes& plain) {
  Record record{Bytes(plain.size()), {}};
  record.tag = by.seal(plain, record.bytes.data());
  return record;
}

/// Returns the plain bytes; nothing if the record does not open.
std::optional<Bytes> open(RecordSeal& by, Record record) {
  if (!by.open(record.bytes, record.tag)) return {};
  return record.bytes;
}

constexpr Cipher all_ciphers[] = {Cipher::chacha20_poly1305, Cipher::aes256_gcm};

}  // namespace

TEST_CASE("records of any size open to the bytes that were sealed", "[transport]") {
  for (const auto cipher : all_ciphers) {
    RecordSeal sender(terms(cipher)), receiver(terms(cipher));
    for (const std::size_t size : {0, 1, 15, 16, 17, 48, 1000, 131'072, 16 << 20, 0}) {
      INFO(size);
      const auto plain = made_bytes(size, size);
      const auto record = seal(sender, plain);
      if (size >= 16) CHECK(record.bytes != plain);
      CHECK(open(receiver, record) == plain);
    }
    // Seals in place too.
    auto bytes = made_bytes(500, 1);
    const auto plain = bytes;
    const auto tag = sender.seal(bytes, bytes.data());
    REQUIRE(receiver.open(bytes, tag));
    CHECK(bytes == plain);
  }
}

TEST_CASE("a record is bound to its key, cipher, content and position", "[transport]") {
  for (const auto cipher : all_ciphers) {
    const auto plain = made_bytes(1000, 3);
    RecordSeal sender(terms(cipher)), receiver(terms(cipher));
    auto first = seal(sender, plain), second = seal(sender, plain);
    // Equal bytes give different records.
    CHECK(first.bytes != second.bytes);
    CHECK(first.tag != second.tag);
    SECTION("a changed byte") {
      first.bytes[500] ^= std::byte{1};
      CHECK(!open(receiver, first));
    }
    SECTION("a changed tag") {
      first.tag[15] ^= std::byte{128};
      CHECK(!open(receiver, first));
    }
    SECTION("a byte less") {
      first.bytes.pop_back();
      CHECK(!open(receiver, first));
    }
    SECTION("nothing at all") { CHECK(!open(receiver, {{}, first.tag})); }
    SECTION("the second before the first") { CHECK(!open(receiver, second)); }
    SECTION("the first twice") {
      CHECK(open(receiver, first) == plain);
      CHECK(!open(receiver, first));
    }
    SECTION("another key") {
      auto other = terms(cipher);
      other.key.data()[31] ^= 1;
      RecordSeal stranger(other);
      CHECK(!open(stranger, first));
    }
    SECTION("another cipher") {
      for (const auto other : all_ciphers) {
        RecordSeal stranger(terms(other));
        CHECK(open(stranger, first).has_value() == (other == cipher));
      }
    }
  }
}

TEST_CASE("a key is replaced after a number of records", "[transport]") {
  for (const auto cipher : all_ciphers) {
    const auto plain = made_bytes(100, 4);
    RecordSeal sender(terms(cipher, 3)), receiver(terms(cipher, 3)), faithful(terms(cipher));
    std::vector<Record> records;
    for (int i = 0; i < 10; ++i) {
      const auto record = seal(sender, plain);
      for (const auto& before : records) CHECK(record.bytes != before.bytes);
      records.push_back(record);
      CHECK(open(receiver, record) == plain);
      // A receiver that keeps the first key cannot follow.
      CHECK(open(faithful, record).has_value() == (i < 3));
    }
  }
}
