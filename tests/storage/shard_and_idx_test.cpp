#include "catch.h"
#include "storage/data/idx.h"
#include "storage/data/token_shard.h"
#include "storage/files/memory_files.h"
#include "tests/storage/data_files.h"

using namespace troupe;
using namespace troupe::storage;

namespace {

std::string integer(std::uint32_t value) {
  std::string bytes;
  for (int i = 0; i < 4; ++i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}

std::string shard(std::uint32_t magic, std::uint32_t version, std::uint32_t count,
                  const std::string& tokens) {
  return integer(magic) + integer(version) + integer(count) + std::string(1012, '\0') + tokens;
}

std::string shard_error(const std::string& bytes) {
  const auto parsed = TokenShard::parse(Bytes::copy_of(bytes));
  return parsed ? "none" : parsed.error().text;
}

std::string idx_error(const std::string& bytes) {
  const auto parsed = IdxArray::parse(Bytes::copy_of(bytes));
  return parsed ? "none" : parsed.error().text;
}

}  // namespace

TEST_CASE("shards of both widths have the layout of llm.c", "[storage]") {
  MemoryFiles files;
  const std::array<std::int32_t, 3> tokens = {1, 50'256, 0x0203};
  REQUIRE(write_token_shard(files, "gpt2.bin", TokenShard::Width::bits16, tokens));
  REQUIRE(write_token_shard(files, "llama.bin", TokenShard::Width::bits32, tokens));
  CHECK(files.read("gpt2.bin")->text() ==
        shard(20240520, 1, 3, std::string("\x01\x00\x50\xc4\x03\x02", 6)));
  CHECK(files.read("llama.bin")->text() ==
        shard(20240801, 7, 3, integer(1) + integer(50'256) + integer(0x0203)));
  for (const auto* path : {"gpt2.bin", "llama.bin"}) {
    const auto read = TokenShard::open(files, path);
    REQUIRE(read);
    CHECK(read->count() == 3);
    for (std::int64_t i = 0; i < 3; ++i)
      CHECK((*read)[i] == static_cast<std::uint32_t>(tokens[static_cast<std::size_t>(i)]));
  }
}

TEST_CASE("a token that does not fit its shard's width is not written", "[storage]") {
  MemoryFiles files;
  const std::array<std::int32_t, 2> tokens = {1, 65'536};
  CHECK(write_token_shard(files, "a.bin", TokenShard::Width::bits16, tokens).error().text ==
        "a.bin: token 65536 at position 1 does not fit into 16 bits");
  CHECK_FALSE(*files.exists("a.bin"));
}

TEST_CASE("a damaged shard is refused with the reason", "[storage]") {
  CHECK(shard_error(shard(20240520, 1, 0, "")) == "none");
  CHECK(shard_error("") == "is no token shard: it has 0 bytes, and its header alone has 1024");
  CHECK(shard_error(shard(20240521, 1, 0, "")) ==
        "is no token shard: it begins with 20240521; 20240520 (16 bits) or 20240801 (32 bits) was "
        "wanted");
  CHECK(shard_error(shard(20240520, 2, 0, "")) ==
        "has version 2; a shard with magic 20240520 has version 1");
  CHECK(shard_error(shard(20240520, 1, 2, "abc")) ==
        "has 1027 bytes, but its header promises 2 tokens, which make 1028; it is cut off");
  CHECK(shard_error(shard(20240520, 1, 1, "abc")) ==
        "has 1027 bytes, but its header promises 1 tokens, which make 1026");
  CHECK(shard_error(shard(20240801, 7, 0xffffffffu, "abcd")) ==
        "has 1028 bytes, but its header promises 4294967295 tokens, which make 17179870204; it is "
        "cut off");
}

TEST_CASE("IDX arrays are written and read in the MNIST format", "[storage]") {
  MemoryFiles files;
  const std::array<std::uint8_t, 6> values = {1, 2, 3, 4, 5, 6};
  REQUIRE(write_idx(files, "a", Shape{3, 2}, values));
  CHECK(files.read("a")->text() ==
        std::string("\0\0\x08\x02\0\0\0\x03\0\0\0\x02\x01\x02\x03\x04\x05\x06", 18));
  const auto read = IdxArray::open(files, "a");
  REQUIRE(read);
  CHECK(read->shape() == Shape{3, 2});
  CHECK(read->values()[5] == 6);
}

TEST_CASE("a damaged IDX file is refused with the reason", "[storage]") {
  const auto bytes = [](const char* text, std::size_t size) { return std::string(text, size); };
  CHECK(idx_error("") ==
        "is no IDX file: it does not begin with two zero bytes, a type and a rank");
  CHECK(idx_error("\x1f\x8b gz") == "is compressed; unpack it first (gunzip)");
  CHECK(idx_error(bytes("\0\0\x0d\x01\0\0\0\x01\0\0\0\0", 12)) ==
        "has elements of type 13; only 8, unsigned bytes, is read");
  CHECK(idx_error(bytes("\0\0\x08\0", 4)) == "has 0 dimensions; 1 to 8 are read");
  CHECK(idx_error(bytes("\0\0\x08\x09", 4)) == "has 9 dimensions; 1 to 8 are read");
  CHECK(idx_error(bytes("\0\0\x08\x02\0\0\0\x01", 8)) == "is cut off within its header");
  CHECK(idx_error(bytes("\0\0\x08\x01\0\0\0\x03\x01\x02", 10)) ==
        "has 2 bytes of data, fewer than its dimensions need; it is cut off");
  CHECK(idx_error(bytes("\0\0\x08\x01\0\0\0\x01\x01\x02", 10)) ==
        "has 1 bytes more than its dimensions need");
  CHECK(idx_error(bytes("\0\0\x08\x01\0\0\0\0", 8)) == "has a dimension of size 0");
  std::string huge("\0\0\x08\x08", 4);
  huge += std::string(32, '\xff') + "x";
  CHECK(idx_error(huge) == "has 1 bytes of data, fewer than its dimensions need; it is cut off");
}
