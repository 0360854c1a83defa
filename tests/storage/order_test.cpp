#include "storage/data/order.h"

#include <vector>

#include "catch.h"

using namespace troupe::storage;

TEST_CASE("the order of a pass is a bijection for every count up to 1,500", "[storage]") {
  std::vector<char> seen;
  for (std::int64_t count = 1; count <= 1'500; ++count) {
    seen.assign(static_cast<std::size_t>(count), 0);
    for (std::int64_t i = 0; i < count; ++i) {
      const auto sample = permute(7, count % 3, i, count);
      REQUIRE((sample >= 0 && sample < count));
      REQUIRE(seen[static_cast<std::size_t>(sample)]++ == 0);
    }
  }
}

TEST_CASE("unpermute inverts permute for small and huge counts", "[storage]") {
  const std::int64_t counts[] = {1,        2, 3, 4, 5, 1'000, 65'536, 65'537, std::int64_t{1} << 40,
                                 INT64_MAX};
  for (const auto count : counts)
    for (std::int64_t k = 0; k < 100; ++k) {
      const auto i = k * (count / 100 + 1) % count;
      CHECK(unpermute(3, 5, permute(3, 5, i, count), count) == i);
      CHECK(permute(3, 5, unpermute(3, 5, i, count), count) == i);
    }
}

TEST_CASE("seeds and passes give different orders", "[storage]") {
  const auto order = [](std::uint64_t seed, std::int64_t pass) {
    std::vector<std::int64_t> samples;
    for (std::int64_t i = 0; i < 50; ++i) samples.push_back(permute(seed, pass, i, 50));
    return samples;
  };
  CHECK(order(1, 0) == order(1, 0));
  CHECK(order(1, 0) != order(2, 0));
  CHECK(order(1, 0) != order(1, 1));
  CHECK(order(1, 0) != order(std::uint64_t{1} << 32 | 1, 0));
  CHECK(order(1, 0) != order(1, std::int64_t{1} << 32));
}

TEST_CASE("the sample order equals its reference value", "[storage]") {
  std::vector<std::int64_t> samples;
  for (std::int64_t i = 0; i < 10; ++i) samples.push_back(permute(42, 0, i, 10));
  CHECK(samples == std::vector<std::int64_t>{4, 9, 1, 7, 8, 6, 2, 5, 0, 3});
}

TEST_CASE("a pass spreads every tenth of the data evenly", "[storage]") {
  constexpr int passes = 100;
  constexpr int count = 1'000;
  int hits[10][10] = {};
  for (int pass = 0; pass < passes; ++pass)
    for (int i = 0; i < count; ++i) ++hits[i / 100][permute(1, pass, i, count) / 100];
  // Chi squared with 81 degrees of freedom is below 130 except for one seed in 2,000.
  double chi_squared = 0;
  for (const auto& row : hits)
    for (const int hit : row) chi_squared += (hit - 1'000.0) * (hit - 1'000.0) / 1'000.0;
  CHECK(chi_squared < 130);
}

TEST_CASE("positions continue from pass to pass", "[storage]") {
  const SampleOrder shuffled(SampleOrder::Kind::shuffled, 9, 7);
  const SampleOrder sequential(SampleOrder::Kind::sequential, 9, 7);
  CHECK(sequential.at(0) == Place{0, 0});
  CHECK(sequential.at(6) == Place{0, 6});
  CHECK(sequential.at(7) == Place{1, 0});
  CHECK(sequential.at(30) == Place{4, 2});
  for (std::int64_t position = 0; position < 40; ++position) {
    CHECK(shuffled.at(position).pass == position / 7);
    CHECK(shuffled.at(position).sample == permute(9, position / 7, position % 7, 7));
    CHECK(shuffled.position_of(shuffled.at(position)) == position);
    CHECK(sequential.position_of(sequential.at(position)) == position);
  }
}
