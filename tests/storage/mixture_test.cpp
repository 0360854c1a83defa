#include "storage/data/mixture.h"

#include <map>
#include <optional>
#include <utility>

#include "catch.h"
#include "core/json.h"
#include "storage/checkpoint/ledger.h"
#include "storage/checkpoint/ledger_lines.h"
#include "storage/data/mixed_dataset.h"
#include "storage/files/memory_files.h"
#include "storage/files/records.h"
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

}  // namespace

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
  REQUIRE(good.sources.size() == 2);
  CHECK(good.sources[0].name == "a");
  CHECK(good.sources[0].samples == 13 + 15);
  CHECK(good.sources[0].passes == 7);
  CHECK(good.sources[1].samples == 7 + 45);
  REQUIRE(good.phases.size() == 2);
  CHECK(good.phases[0].first == 1);
  CHECK(good.phases[0].last == 5);
  CHECK(good.phases[0].of_sources == std::vector<std::int64_t>{13, 7});
  CHECK(good.phases[1].last == 20);
  CHECK(good.phases[1].of_sources == std::vector<std::int64_t>{15, 45});
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

namespace {

constexpr std::int64_t in_step = 4;

LedgerTerms terms_with(const std::string& mix) {
  return {SampleOrder::Kind::shuffled, seed, 7, in_step, 2, mix, {4, 3}};
}

/// A ledger in memory.
struct MixedLedger {
  MemoryFiles files;
  std::optional<Ledger> ledger;

  explicit MixedLedger(const LedgerTerms& terms) {
    auto opened = Ledger::open(files, "ledger", terms);
    REQUIRE(opened);
    ledger.emplace(std::move(*opened));
  }
  /// Enters the steps behind `after` up to `last`, with the samples of these terms.
  void play(const LedgerTerms& terms, std::int64_t after, std::int64_t last) {
    REQUIRE(ledger->begin(after));
    for (auto step = after + 1; step <= last; ++step) {
      const auto first = (step - 1) * in_step;
      REQUIRE(ledger->enter({step, first, in_step, ids_of(terms, first), {}, 1.0, false}));
    }
  }
  std::string text() {
    REQUIRE(ledger->sync());
    const auto bytes = files.read("ledger");
    REQUIRE(bytes);
    return std::string(bytes->text());
  }
  std::string flaw() { return audit(text()).flaw; }
};

}  // namespace

TEST_CASE("a ledger has each step's samples of each source", "[storage]") {
  const auto terms = terms_with("a 3, b 1; from 2: b 1");
  MixedLedger run(terms);
  run.play(terms, 0, 3);
  const auto records = read_records(run.text()).good;
  REQUIRE(records.size() == 4);
  const auto counts = [&](std::size_t record) {
    return to_json(*records[record].value.find("of_sources"));
  };
  CHECK(counts(1) == "[3,1]");
  CHECK(counts(2) == "[3,1]");
  CHECK(counts(3) == "[0,4]");
}

TEST_CASE("weights that change for later steps are no flaw of a ledger", "[storage]") {
  const auto before = terms_with("a 3, b 1"), after = terms_with("a 3, b 1; from 6: a 1, b 1");
  MixedLedger run(before);
  run.play(before, 0, 6);
  run.ledger->change(after);
  run.play(after, 6, 9);
  run.play(after, 4, 12);  // It recovers from a state before the change.
  const auto audited = audit(run.text());
  CHECK(audited.flaw == "");
  REQUIRE(audited.phases.size() == 2);
  CHECK(audited.phases[0].of_sources == std::vector<std::int64_t>{18, 6});
  CHECK(audited.phases[1].of_sources == std::vector<std::int64_t>{12, 12});
}

TEST_CASE("weights that change for steps already done are a flaw", "[storage]") {
  const auto before = terms_with("a 3, b 1"), after = terms_with("a 3, b 1; from 4: a 1, b 1");
  MixedLedger run(before);
  run.play(before, 0, 6);
  run.ledger->change(after);
  run.play(after, 6, 9);
  CHECK(run.flaw().find("has other samples in earlier steps than \"a 3, b 1\"") !=
        std::string::npos);

  // The steps of an attempt count again, after one with other weights.
  MixedLedger again(before);
  again.play(before, 0, 6);
  again.ledger->change(after);
  again.play(after, 4, 4);
  again.play(after, 6, 7);
  CHECK(mentions_samples(again.flaw()));
}

TEST_CASE("an audit finds wrong counts of sources", "[storage]") {
  const auto terms = terms_with("a 3, b 1");
  // Records of the same samples, but with other counts.
  const auto text_with = [&](const Value& counts) {
    MemoryFiles files;
    auto writer = RecordWriter::open(files, "ledger");
    REQUIRE(writer);
    REQUIRE(writer->append(to_record(Beginning{0, terms})));
    Value step = to_record(LedgerStep{1, 0, in_step, ids_of(terms, 0), {}, 1.0, false});
    if (!counts.is_null()) step.set("of_sources", counts);
    REQUIRE(writer->append(step));
    REQUIRE(writer->sync());
    return std::string(files.read("ledger")->text());
  };
  CHECK(audit(text_with(Value::List{3, 1})).flaw == "");
  CHECK(audit(text_with({})).flaw == "");  // As earlier versions wrote it.
  CHECK(audit(text_with(Value::List{2, 2})).flaw ==
        "line 2: step 1: recorded 2, 2 samples of the sources; the mixture gives it 3, 1");
  CHECK(audit(text_with(Value::List{4})).flaw.find("recorded 4 samples") != std::string::npos);
}
