#include "storage/data/mixture.h"

#include <map>

#include "catch.h"
#include "storage/checkpoint/ledger.h"
#include "storage/data/mixed_dataset.h"
#include "storage/files/memory_files.h"
#include "tests/storage/data_files.h"

using namespace troupe;
using namespace troupe::storage;

namespace {

constexpr std::uint64_t seed = 7;

MixedOrder order_of(const std::string& text, std::int64_t global,
                    const std::vector<std::int64_t>& counts) {
  const auto mixture = Mixture::parse(text);
  INFO((mixture ? "" : mixture.error().text));
  REQUIRE(mixture);
  return {*mixture, SampleOrder::Kind::shuffled, seed, global, counts};
}

bool mentions_samples(const std::string& flaw) {
  return flaw.find("read other samples than those of positions") != flaw.npos;
}

std::string error_of_mixture(const std::string& text) {
  const auto mixture = Mixture::parse(text);
  return mixture ? "none" : mixture.error().text;
}

}  // namespace

TEST_CASE("a mixture is read, and written so that it reads back equal", "[storage]") {
  const auto mixture = Mixture::parse("a.bin 14, my b.bin 4;from 2000:  c.bin 1 , a.bin 1");
  REQUIRE(mixture);
  CHECK(mixture->sources == std::vector<std::string>{"a.bin", "my b.bin", "c.bin"});
  CHECK(mixture->text() == "a.bin 7, my b.bin 2; from 2000: c.bin 1, a.bin 1");
  CHECK(*Mixture::parse(mixture->text()) == *mixture);
}

TEST_CASE("a mixture that is none is refused with the part that is wrong", "[storage]") {
  CHECK(error_of_mixture("") ==
        "found \"\", wanted a source and its weight from 1 to 1000000, such as \"a.bin 7\"");
  CHECK(error_of_mixture("a.bin 7, b.bin")
            .starts_with("found \"b.bin\", wanted a source and its weight"));
  CHECK(error_of_mixture("a.bin 0").starts_with("found \"a.bin 0\""));
  CHECK(error_of_mixture("a.bin -3").starts_with("found \"a.bin -3\""));
  CHECK(error_of_mixture("a.bin 99999999999999999999").starts_with("found \"a.bin 9999"));
  CHECK(error_of_mixture("a.bin 1, a.bin 2") == "\"a.bin 1, a.bin 2\" names \"a.bin\" twice");
  CHECK(error_of_mixture("a.bin 997, b.bin 991") ==
        "\"a.bin 997, b.bin 991\" makes blocks of 1988 samples; at most 1000 are taken: choose "
        "smaller weights");
  CHECK(error_of_mixture("from 5: a.bin 1") ==
        "begins with step 5; weights for the first step were wanted before");
  CHECK(error_of_mixture("a 1; from 9: a 2; from 9: a 3") ==
        "step 9 comes behind step 9; later steps were wanted");
  CHECK(error_of_mixture("a 1; from x: a 2") ==
        "found \"from x: a 2\", wanted a step, such as \"from 2000: a.bin 1\"");
}

TEST_CASE("weights may change beyond every position that fits", "[storage]") {
  const auto order = order_of("a 1; from 200000000000000: b 1", 1'000'000, {3, 3});
  CHECK(order.at(0).source == 0);
  CHECK(order.at(std::int64_t{1} << 62).source == 0);
}

TEST_CASE("every block has each source by its weight, and no sample is left out", "[storage]") {
  // Steps of 4 samples: the change comes at position 40, in the middle of a block of 9.
  const std::vector<std::int64_t> counts = {10, 3, 5};
  const auto order = order_of("a 6, b 2, c 1; from 10: c 1, a 1", 4, counts);
  std::vector<std::vector<Place>> places(counts.size());
  std::map<std::int64_t, std::vector<std::int64_t>> in_block;
  for (std::int64_t position = 0; position < 200; ++position) {
    CHECK(order.drawn_before(position) == std::vector<std::int64_t>{std::ssize(places[0]),
                                                                    std::ssize(places[1]),
                                                                    std::ssize(places[2])});
    const auto drawn = order.at(position);
    places[drawn.source].push_back(drawn.place);
    auto& block = in_block[position < 40 ? position / 9 : 100 + (position - 40) / 2];
    block.resize(counts.size());
    ++block[drawn.source];
  }
  for (const auto& [block, drawn] : in_block) {
    INFO(block);
    if (block < 4) CHECK(drawn == std::vector<std::int64_t>{6, 2, 1});
    if (block >= 100) CHECK(drawn == std::vector<std::int64_t>{1, 0, 1});
  }
  // Each source goes on where it was, also where the weights changed.
  for (std::size_t source = 0; source < counts.size(); ++source) {
    const SampleOrder own(SampleOrder::Kind::shuffled, seed, counts[source]);
    for (std::size_t i = 0; i < places[source].size(); ++i)
      CHECK(places[source][i] == own.at(static_cast<std::int64_t>(i)));
  }
}

TEST_CASE("sources of a mixture are opened one behind the other", "[storage]") {
  MemoryFiles files;
  put(files, "a.txt", "abcdefg");
  put(files, "b.txt", "uvwxyz");
  const auto mixture = Mixture::parse("a.txt 2, b.txt 1");
  const auto opened = open_mixture(*mixture, {.context = 2}, files);
  REQUIRE(opened);
  CHECK(opened->counts == std::vector<std::int64_t>{3, 2});
  const auto& data = *opened->data.dataset;
  CHECK(data.count() == 5);
  CHECK(data.description() == "a mixture of a.txt 2, b.txt 1, 5 samples");
  CHECK(sample<std::int32_t>(data, 2).input == std::vector<std::int32_t>{'e', 'f'});
  CHECK(sample<std::int32_t>(data, 3).input == std::vector<std::int32_t>{'u', 'v'});
  CHECK(opened->data.files.size() == 2);

  const auto error_with = [&](const std::string& text) {
    const auto wrong = open_mixture(*Mixture::parse(text), {.context = 2}, files);
    return wrong ? "none" : wrong.error().text;
  };
  CHECK(error_with("a.txt 1, c.txt 1").starts_with("c.txt: "));
  CHECK(error_with("a.txt 1, made:glyphs 1").starts_with("made:glyphs: "));
}

TEST_CASE("an audit of a mixture finds the samples of each source", "[storage]") {
  MemoryFiles files;
  LedgerTerms terms{SampleOrder::Kind::shuffled,  seed,  7, 4, 2,
                    "a 2, b 1; from 5: b 3, a 1", {4, 3}};
  const auto write = [&](const LedgerTerms& of, std::int64_t steps) {
    auto ledger = Ledger::open(files, "ledger" + std::to_string(steps), terms);
    REQUIRE(ledger);
    REQUIRE(ledger->begin(0));
    for (std::int64_t step = 1; step <= steps; ++step)
      REQUIRE(ledger->enter({step, (step - 1) * 4, 4, ids_of(of, (step - 1) * 4), {}, 1.0, false}));
    REQUIRE(ledger->sync());
    const auto bytes = files.read("ledger" + std::to_string(steps));
    REQUIRE(bytes);
    return audit(bytes->text());
  };
  const auto good = write(terms, 20);
  CHECK(good.flaw == "");
  CHECK(good.samples == 80);
  // 13 of the first 20 are of the source with 4 samples, and of the other 60 one in four.
  CHECK(good.passes == 7);
  auto other = terms;
  other.mix = "a 1, b 2; from 5: b 3, a 1";
  CHECK(mentions_samples(write(other, 10).flaw));
}

TEST_CASE("blocks are arranged by the seed and their number", "[storage]") {
  const auto order = order_of("a 5, b 4", 1, {100, 100});
  const auto arrangement = [&](const MixedOrder& of, std::int64_t block) {
    std::string sources;
    for (std::int64_t slot = 0; slot < 9; ++slot)
      sources += of.at(block * 9 + slot).source ? 'b' : 'a';
    return sources;
  };
  int same = 0;
  for (std::int64_t block = 1; block < 50; ++block)
    same += arrangement(order, block) == arrangement(order, 0);
  CHECK(same < 10);
  const MixedOrder other(*Mixture::parse("a 5, b 4"), SampleOrder::Kind::shuffled, seed + 1, 1,
                         {100, 100});
  CHECK(arrangement(other, 0) + arrangement(other, 1) !=
        arrangement(order, 0) + arrangement(order, 1));
}
