#include "core/stream.h"

#include <vector>

#include "catch.h"

using namespace troupe;

TEST_CASE("for_each calls its body once for each index, with any number of threads", "[core]") {
  MemoryPool memory;
  for (int threads : {1, 2, 5}) {
    Stream stream(memory, threads);
    CHECK(stream.threads() == threads);
    for (int count : {0, 1, 2, 7, 1'000}) {
      std::vector<int> calls(static_cast<std::size_t>(count));
      for (int round = 0; round < 20; ++round)
        stream.for_each(count, [&](std::int64_t i) { ++calls[static_cast<std::size_t>(i)]; });
      CHECK(calls == std::vector<int>(static_cast<std::size_t>(count), 20));
    }
  }
}

TEST_CASE("jobs follow each other at once, and late helpers disturb none", "[core]") {
  MemoryPool memory;
  // More helpers than cores: most come late.
  Stream stream(memory, 9);
  for (std::int64_t round = 0; round < 20'000; ++round) {
    const std::int64_t count = 2 + round % 5;
    std::atomic<std::int64_t> sum = 0;
    stream.for_each(count, [&](std::int64_t i) { sum += i + round; });
    REQUIRE(sum == count * (count - 1) / 2 + count * round);
  }
}

TEST_CASE("where the cores compute no tensor is brought anywhere", "[core]") {
  MemoryPool memory;
  Stream stream(memory);
  const Tensor x = stream.make({3});
  CHECK(x.place().is_host());
  CHECK(&stream.host_memory() == &memory);
  CHECK(stream.to_here(x).raw() == x.raw());
  CHECK(stream.to_host(x).raw() == x.raw());
  CHECK(stream.to_here({}).empty());
}
