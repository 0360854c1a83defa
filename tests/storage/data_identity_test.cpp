#include "storage/data/data_identity.h"

#include "catch.h"
#include "storage/data/token_shard.h"
#include "storage/files/memory_files.h"
#include "tests/storage/temporary_directory.h"

using namespace troupe;
using namespace troupe::storage;

namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20;

void write(Files& files, const std::string& path, std::size_t bytes, char fill) {
  const std::string text(bytes, fill);
  REQUIRE(replace_file(files, path, text));
}

}  // namespace

TEST_CASE("flipping any byte of a small data file changes its identity", "[storage]") {
  MemoryFiles files;
  write(files, "book.txt", 30'000, 'a');
  const auto before = identity_of(files, "book.txt");
  REQUIRE(before);
  for (const std::uint64_t byte : {0, 14'321, 29'999}) {
    files.flip_bit("book.txt", byte);
    CHECK_FALSE(*identity_of(files, "book.txt") == *before);
    files.flip_bit("book.txt", byte);
  }
  CHECK(*identity_of(files, "book.txt") == *before);
}

TEST_CASE("the identity of a large data file depends on its size, ends and sampled blocks",
          "[storage]") {
  MemoryFiles files;
  write(files, "large", 9 * mebibyte, 'a');
  const auto before = *identity_of(files, "large");
  for (const std::uint64_t byte : {std::uint64_t{0}, std::uint64_t{9 * mebibyte - 1}}) {
    files.flip_bit("large", byte);
    CHECK_FALSE(*identity_of(files, "large") == before);
    files.flip_bit("large", byte);
  }
  write(files, "longer", 9 * mebibyte + 1, 'a');
  CHECK_FALSE(*identity_of(files, "longer") == before);
  write(files, "other", 9 * mebibyte, 'b');
  CHECK_FALSE(*identity_of(files, "other") == before);
}

TEST_CASE("computing the identity of a file of any size reads 32 blocks", "[storage]") {
  MemoryFiles files;
  write(files, "large", 40 * mebibyte, 'a');
  const auto looks = files.looks();
  REQUIRE(identity_of(files, "large"));
  CHECK(files.looks() - looks == 33);  // Opens the file and reads 32 blocks.
}

TEST_CASE("a dataset is reopened only if its file has changed", "[storage]") {
  MemoryFiles files;
  write(files, "book.txt", 2'000, 'a');
  const DataNeeds needs{16, 0};
  const auto first = open_data("book.txt", needs, files);
  REQUIRE(first);
  REQUIRE(first->files.size() == 1);
  CHECK(first->files[0].path == "book.txt");
  const auto again = open_data("book.txt", needs, files);
  REQUIRE(again);
  CHECK(again->dataset == first->dataset);
  write(files, "book.txt", 2'000, 'b');
  const auto swapped = open_data("book.txt", needs, files);
  REQUIRE(swapped);
  CHECK(swapped->dataset != first->dataset);
  CHECK_FALSE(swapped->files == first->files);
  CHECK(open_data("made:markov", needs, files)->files.empty());
}

TEST_CASE("a new shard that matches a pattern is found", "[storage]") {
  MemoryFiles files;
  const std::vector<std::int32_t> tokens(100, 3);
  REQUIRE(write_token_shard(files, "a_1.bin", TokenShard::Width::bits16, tokens));
  const auto one = open_data("a_*.bin", {16, 0}, files);
  REQUIRE((one && one->files.size() == 1));
  REQUIRE(write_token_shard(files, "a_2.bin", TokenShard::Width::bits16, tokens));
  const auto two = open_data("a_*.bin", {16, 0}, files);
  REQUIRE(two);
  CHECK(two->files.size() == 2);
}

TEST_CASE("a shard with a given vocabulary is opened without scanning its tokens", "[storage]") {
  const TemporaryDirectory directory;
  const auto files = disk_files();
  const std::string path = directory / "a.bin";
  std::vector<std::int32_t> tokens(1'000, 3);
  tokens[900] = 60'000;
  REQUIRE(write_token_shard(*files, path, TokenShard::Width::bits16, tokens));
  const auto opened = open_data(path, {.context = 16, .classes = 0, .vocabulary = 50}, *files);
  REQUIRE(opened);
  CHECK(opened->dataset->classes() == 50);
  std::vector<std::byte> input(64);
  std::vector<std::byte> target(64);
  CHECK(opened->dataset->read({}, {{input}, target}));
  const auto read = opened->dataset->read({.sample = 56}, {{input}, target});
  REQUIRE_FALSE(read);
  CHECK(read.error().text.find(": token 900 is 60000, but the model's vocabulary has 50") !=
        std::string::npos);
  // Without other information, the largest token gives the number of classes.
  CHECK(open_data(path, {16, 0}, *files)->dataset->classes() == 60'001);
}
