#include "storage/checkpoint/ledger.h"

#include <limits>
#include <map>
#include <sstream>

#include "catch.h"
#include "storage/data/micro_batches.h"
#include "storage/files/memory_files.h"

using namespace troupe;
using namespace troupe::storage;

namespace {

const LedgerTerms ledger_terms = {SampleOrder::Kind::shuffled, 7, 10, 4, 2};
const std::string path = "runs/r/ledger";

LedgerStep step(std::int64_t number) {
  const auto first = (number - 1) * ledger_terms.global;
  return {number, first, ledger_terms.global, ids_of(ledger_terms, first),
          {},     0.5,   number % 3 == 0};
}

std::unique_ptr<Dataset> ten_points(const std::string& more, Files& files) {
  auto data = open_dataset("made:gaussians?dims=2&classes=2&" + more, {}, files);
  REQUIRE(data);
  return std::move(*data);
}

/// Returns the ledger entry of a process that has read this data.
LedgerStep step_of_data(std::int64_t number, const Dataset& data) {
  MemoryPool memory;
  const MicroBatches batches(data, ledger_terms.samples(), ledger_terms.global, ledger_terms.micro);
  std::vector<Digest> contents;
  for (int m = 0; m < batches.per_step(); ++m)
    contents.push_back(batches.read(memory, number - 1, m)->content);
  auto made = step(number);
  made.content = digest_of_step(contents);
  return made;
}

/// Continues the ledger after step `after` up to step `last`.
void write(Files& files, std::int64_t after, std::int64_t last) {
  auto ledger = Ledger::open(files, path, ledger_terms);
  REQUIRE(ledger);
  REQUIRE(ledger->begin(after));
  for (std::int64_t number = after + 1; number <= last; ++number)
    REQUIRE(ledger->enter(step(number)));
  REQUIRE(ledger->sync());
}

std::string text_of(Files& files) { return std::string(files.read(path)->text()); }

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line + "\n");
  return lines;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines) text += line;
  return text;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

}  // namespace

TEST_CASE("an audit that rereads the data detects other bytes", "[storage]") {
  MemoryFiles files;
  const auto data = ten_points("samples=10", files);
  {
    auto ledger = Ledger::open(files, path, ledger_terms);
    REQUIRE(ledger);
    REQUIRE(ledger->begin(0));
    for (std::int64_t number = 1; number <= 5; ++number)
      REQUIRE(ledger->enter(step_of_data(number, *data)));
    // Two steps are rolled back and repeated.
    REQUIRE(ledger->begin(3));
    REQUIRE(ledger->enter(step_of_data(4, *data)));
    REQUIRE(ledger->sync());
  }
  const auto good = audit(text_of(files), data.get());
  CHECK(good.flaw.empty());
  CHECK(good.read_again == 4);
  CHECK(audit(text_of(files)).read_again == 0);

  const auto other = ten_points("samples=10&stream=1", files);
  const auto found = audit(text_of(files), other.get());
  CHECK(contains(found.flaw, "step 1 read other bytes than the data has now: sample "));
  CHECK(found.read_again == 0);
  const auto longer = ten_points("samples=11", files);
  CHECK(audit(text_of(files), longer.get()).flaw ==
        "the data has 11 samples now, and had 10 when the run read it");
}

TEST_CASE("a ledger of complete passes proves that each sample was used once", "[storage]") {
  MemoryFiles files;
  write(files, 0, 5);
  const auto found = audit(text_of(files));
  CHECK(found.flaw.empty());
  CHECK(found.steps == 5);
  CHECK(found.samples == 20);
  CHECK(found.passes == 2);
  CHECK(found.skipped == 1);
  CHECK(found.attempts == 1);
  CHECK(found.taken_back == 0);
  CHECK_FALSE(found.is_torn);
}

TEST_CASE("steps after the checkpoint are rolled back and counted once", "[storage]") {
  MemoryFiles files;
  write(files, 0, 7);
  write(files, 5, 6);  // Dies again.
  write(files, 5, 9);
  const auto found = audit(text_of(files));
  CHECK(found.flaw.empty());
  CHECK(found.steps == 9);
  CHECK(found.attempts == 3);
  CHECK(found.skipped == 3);  // Rolled-back steps do not count.
  CHECK(found.taken_back == 3);
}

TEST_CASE("an audit finds an attempt that continues after missing steps", "[storage]") {
  MemoryFiles files;
  write(files, 0, 2);
  write(files, 3, 5);
  const auto found = audit(text_of(files));
  // Step 3 covers positions 8 .. 11.
  const auto place = ledger_terms.samples().at(8);
  CHECK(found.flaw ==
        "line 4: the attempt continues after step 3, but of step 3 nothing is told: sample " +
            std::to_string(place.sample) + " of pass 0 (position 8) is in no committed step");
}

TEST_CASE("a run may later resume from a checkpoint that it skipped", "[storage]") {
  MemoryFiles files;
  write(files, 0, 6);
  // The checkpoint of step 6 could not be read at that moment.
  write(files, 2, 4);
  write(files, 6, 8);
  auto found = audit(text_of(files));
  CHECK(found.flaw == "");
  CHECK(found.steps == 8);
  CHECK(found.attempts == 3);
  CHECK(found.taken_back == 2);
  // No attempt reached step 9.
  write(files, 9, 10);
  CHECK(contains(audit(text_of(files)).flaw, "but of step 9 nothing is told"));
}

TEST_CASE("an audit names steps that are missing, doubled or have other samples", "[storage]") {
  const auto audit_of = [](const std::vector<LedgerStep>& steps) {
    MemoryFiles files;
    auto ledger = Ledger::open(files, path, ledger_terms);
    REQUIRE(ledger);
    REQUIRE(ledger->begin(0));
    for (const auto& one : steps) REQUIRE(ledger->enter(one));
    return audit(text_of(files));
  };
  CHECK(contains(audit_of({step(1), step(3)}).flaw, "step 3 comes where step 2 should"));
  CHECK(contains(audit_of({step(1), step(2), step(2)}).flaw, "step 2 comes a second time"));
  CHECK(contains(audit_of({step(1), step(2), step(2)}).flaw, "is in two committed steps"));
  auto other = step(2);
  other.ids = step(1).ids;
  CHECK(contains(audit_of({step(1), other}).flaw,
                 "step 2 read other samples than those of positions 4..7"));
  auto moved = step(2);
  moved.first = 5;
  CHECK(contains(audit_of({step(1), moved}).flaw, "is of positions 5..8 in place of 4..7"));
  // Two micro-batches in the wrong order are other samples, too.
  auto swapped = step(1);
  const SampleOrder order = ledger_terms.samples();
  std::vector<Place> places;
  for (std::int64_t at : {2, 3, 0, 1}) places.push_back(order.at(at));
  const std::vector<Digest> halves = {digest_of(std::as_bytes(std::span(places).first(2))),
                                      digest_of(std::as_bytes(std::span(places).last(2)))};
  swapped.ids = digest_of_step(halves);
  CHECK(contains(audit_of({swapped}).flaw, "step 1 read other samples"));
}

TEST_CASE("an audit finds another seed, order, batch size or data size in the middle of a run",
          "[storage]") {
  auto other = ledger_terms;
  bool differs = true;
  SECTION("the same terms") { differs = false; }
  SECTION("seed") { other.seed = 8; }
  SECTION("order") { other.order = SampleOrder::Kind::sequential; }
  SECTION("samples of a step") { other.global = 8; }
  SECTION("samples of a micro-batch") { other.micro = 4; }
  SECTION("samples of a pass") { other.count = 11; }
  MemoryFiles files;
  write(files, 0, 2);
  auto ledger = Ledger::open(files, path, other);
  REQUIRE(ledger);
  REQUIRE(ledger->begin(2));
  const auto flaw = audit(text_of(files)).flaw;
  INFO(flaw);
  CHECK(contains(flaw, "differs from the attempt before") == differs);
  if (!differs) CHECK(flaw.empty());
}

TEST_CASE("an audit detects any changed, removed, doubled or swapped line of a ledger",
          "[storage]") {
  MemoryFiles files;
  write(files, 0, 6);
  const std::string good = text_of(files);
  const auto lines = lines_of(good);
  for (std::size_t at = 0; at < good.size(); ++at) {
    auto changed = good;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    INFO("byte " << at << " of " << good.size());
    CHECK_FALSE(audit(changed).flaw.empty());
  }
  for (std::size_t at = 0; at + 1 < lines.size(); ++at) {
    auto without = lines;
    without.erase(without.begin() + static_cast<std::ptrdiff_t>(at));
    CHECK_FALSE(audit(joined(without)).flaw.empty());
    auto doubled = lines;
    doubled.insert(doubled.begin() + static_cast<std::ptrdiff_t>(at), lines[at]);
    CHECK_FALSE(audit(joined(doubled)).flaw.empty());
    auto swapped = lines;
    std::swap(swapped[at], swapped[at + 1]);
    CHECK_FALSE(audit(joined(swapped)).flaw.empty());
  }
  CHECK_FALSE(audit("").flaw.empty());
  CHECK_FALSE(audit("no ledger at all\n").flaw.empty());
}

TEST_CASE("a ledger torn at any byte continues and becomes complete", "[storage]") {
  MemoryFiles files;
  write(files, 0, 4);
  const std::string whole = text_of(files);
  const auto first_line = lines_of(whole)[0].size();
  for (std::size_t bytes = first_line; bytes <= whole.size(); ++bytes) {
    INFO("cut after byte " << bytes);
    MemoryFiles torn;
    REQUIRE(torn.make_directory("runs/r"));
    auto file = torn.create(path);
    REQUIRE((*file)->write(std::as_bytes(std::span(whole.data(), bytes))));
    const auto left = audit(text_of(torn));
    REQUIRE(left.flaw.empty());
    write(torn, left.steps, 8);
    const auto found = audit(text_of(torn));
    CHECK(found.flaw == "");
    CHECK(found.steps == 8);
  }
}

TEST_CASE("a ledger keeps its synced steps after a crash", "[storage]") {
  using Contents = Survival::Contents;
  for (const auto contents : {Contents::lost, Contents::torn, Contents::kept}) {
    MemoryFiles files;
    auto ledger = Ledger::open(files, path, ledger_terms);
    REQUIRE(ledger->begin(0));
    REQUIRE(ledger->enter(step(1)));
    REQUIRE(ledger->sync());
    REQUIRE(ledger->enter(step(2)));
    files.restart({Survival::Entries::lost, contents});
    const auto found = audit(text_of(files));
    CHECK(found.flaw.empty());
    CHECK(found.steps == (contents == Contents::kept ? 2 : 1));
    write(files, 1, 3);
    CHECK(audit(text_of(files)).flaw.empty());
  }
}

TEST_CASE("a ledger writes the refused steps once the disk has room", "[storage]") {
  MemoryFiles files;
  auto ledger = Ledger::open(files, path, ledger_terms);
  REQUIRE(ledger->begin(0));
  REQUIRE(ledger->enter(step(1)));
  files.set_faults({.crash_at = {}, .failing_call = {}, .capacity = text_of(files).size() + 20});
  CHECK_FALSE(ledger->enter(step(2)));
  CHECK_FALSE(ledger->sync());
  CHECK_FALSE(ledger->enter(step(3)));
  files.set_faults({});
  REQUIRE(ledger->enter(step(4)));
  REQUIRE(ledger->sync());
  const auto found = audit(text_of(files));
  CHECK(found.flaw == "");
  CHECK(found.steps == 4);
}

TEST_CASE("a ledger is rewritten after a failed sync and loses no step", "[storage]") {
  MemoryFiles files;
  auto ledger = Ledger::open(files, path, ledger_terms);
  REQUIRE(ledger->begin(0));
  REQUIRE(ledger->enter(step(1)));
  REQUIRE(ledger->sync());
  REQUIRE(ledger->enter(step(2)));
  files.set_faults({.crash_at = {}, .failing_call = files.calls(), .capacity = {}});
  CHECK_FALSE(ledger->sync());
  REQUIRE(ledger->enter(step(3)));
  REQUIRE(ledger->sync());
  files.restart({});
  const auto found = audit(text_of(files));
  CHECK(found.flaw == "");
  CHECK(found.steps == 3);
}

TEST_CASE("the next process writes the steps whose sync had failed", "[storage]") {
  MemoryFiles files;
  {
    auto ledger = Ledger::open(files, path, ledger_terms);
    REQUIRE(ledger->begin(0));
    REQUIRE(ledger->enter(step(1)));
    files.set_faults({.crash_at = {}, .failing_call = files.calls(), .capacity = {}});
    CHECK_FALSE(ledger->sync());
  }
  auto ledger = Ledger::open(files, path, ledger_terms);
  REQUIRE(ledger);
  REQUIRE(ledger->enter(step(2)));
  REQUIRE(ledger->sync());
  files.restart({});
  const auto found = audit(text_of(files));
  CHECK(found.flaw == "");
  CHECK(found.steps == 2);
}

TEST_CASE("withdrawn records never reach the file", "[storage]") {
  MemoryFiles files;
  auto writer = RecordWriter::open(files, path);
  const auto record = [](int number) {
    Value value;
    value.set("number", number);
    return value;
  };
  REQUIRE(writer->append(record(1)));
  REQUIRE(writer->sync());
  files.set_faults({.crash_at = {}, .failing_call = files.calls() + 1, .capacity = {}});
  REQUIRE(writer->append(record(2)));
  CHECK_FALSE(writer->sync());
  REQUIRE(writer->take_back());
  REQUIRE(writer->append(record(3)));
  REQUIRE(writer->sync());
  files.restart({});
  const auto read = read_records(text_of(files));
  CHECK(read.flaw == "");
  REQUIRE(read.good.size() == 2);
  CHECK(read.good[1].value == record(3));
}

TEST_CASE("a damaged ledger is not continued", "[storage]") {
  MemoryFiles files;
  write(files, 0, 3);
  files.flip_bit(path, 30);
  const auto opened = Ledger::open(files, path, ledger_terms);
  REQUIRE_FALSE(opened);
  CHECK(contains(opened.error().text, "line 1 does not follow"));
}

TEST_CASE("a reopened ledger knows its number of steps", "[storage]") {
  MemoryFiles files;
  const auto steps = [&] { return Ledger::open(files, path, ledger_terms)->steps(); };
  CHECK(steps() == 0);
  write(files, 0, 5);
  CHECK(steps() == 5);
  {
    auto ledger = Ledger::open(files, path, ledger_terms);
    REQUIRE(ledger->begin(3));
    CHECK(ledger->steps() == 3);
  }
  CHECK(steps() == 3);
  {
    auto ledger = Ledger::open(files, path, ledger_terms);
    REQUIRE(ledger->enter(step(4)));
    CHECK(ledger->steps() == 4);
  }
  CHECK(steps() == 4);
}

namespace {

constexpr std::size_t little_segment = 400;  // About three steps.

/// Enters and syncs steps until the ledger has 20 or the disk fails. Returns the synced steps.
std::int64_t write_in_segments(Files& files) {
  auto ledger = Ledger::open(files, path, ledger_terms, little_segment);
  if (!ledger) return 0;
  std::int64_t synced = ledger->steps();
  if (!ledger->begin(synced)) return 0;
  for (std::int64_t number = synced + 1; number <= 20; ++number) {
    if (!ledger->enter(step(number))) continue;
    if (ledger->sync()) synced = number;
    if (number % 4 == 0) (void)ledger->saved(number, "there");
  }
  return synced;
}

}  // namespace

TEST_CASE("a ledger opens its newest segment and an audit reads all of them", "[storage]") {
  MemoryFiles files;
  CHECK(write_in_segments(files) == 20);
  const auto segments = segments_of(files, path);
  REQUIRE(segments->older.size() > 4);
  for (const auto& segment : segments->older)
    CHECK(files.inspect(segment)->bytes < 2 * little_segment);
  const auto found = audit(*read_segments(files, path));
  CHECK(found.flaw == "");
  CHECK(found.steps == 20);
  CHECK((*newest_save(files, path))->step == 20);
  // The audit detects a damaged segment; a start does not read it.
  files.flip_bit(segments->older.front(), 30);
  CHECK(Ledger::open(files, path, ledger_terms, little_segment)->steps() == 20);
  CHECK((*newest_save(files, path))->step == 20);
  CHECK(contains(audit(*read_segments(files, path)).flaw, "line 1 does not follow"));
  // The audit also detects a missing segment.
  files.flip_bit(segments->older.front(), 30);
  REQUIRE(files.remove(segments->older[1]));
  CHECK_FALSE(audit(*read_segments(files, path)).flaw == "");
}

TEST_CASE("the newest save is found in an older segment until the run starts anew", "[storage]") {
  MemoryFiles files;
  {
    auto ledger = Ledger::open(files, path, ledger_terms, little_segment);
    REQUIRE(ledger->begin(0));
    REQUIRE(ledger->enter(step(1)));
    REQUIRE(ledger->saved(1, "there"));
    for (int number = 2; number <= 20; ++number) {
      REQUIRE(ledger->enter(step(number)));
      REQUIRE(ledger->sync());
    }
    REQUIRE(segments_of(files, path)->older.size() > 3);
    CHECK((*newest_save(files, path))->step == 1);
    REQUIRE(ledger->begin(0));
  }
  CHECK_FALSE(newest_save(files, path)->has_value());
}

TEST_CASE("a crash at any call loses no synced step of a segmented ledger", "[storage]") {
  using Entries = Survival::Entries;
  using Contents = Survival::Contents;
  MemoryFiles counting;
  REQUIRE(write_in_segments(counting) == 20);
  std::vector<Survival> survivals = {{Entries::lost, Contents::lost, 0},
                                     {Entries::kept, Contents::kept, 0},
                                     {Entries::kept, Contents::torn, 0}};
  for (std::uint64_t seed = 1; seed <= 10; ++seed)
    survivals.push_back({Entries::drawn, Contents::drawn, seed});
  for (const auto& survival : survivals)
    for (std::int64_t call = 0; call < counting.calls(); ++call) {
      INFO("crash at call " << call << ", seed " << survival.seed);
      MemoryFiles files;
      files.set_faults({.crash_at = call, .failing_call = {}, .capacity = {}});
      const auto synced = write_in_segments(files);
      files.restart(survival);
      auto text = read_segments(files, path);
      if (synced > 0) {
        REQUIRE(text);
        const auto found = audit(*text);
        REQUIRE(found.flaw == "");
        REQUIRE(found.steps >= synced);
      }
      REQUIRE(write_in_segments(files) == 20);
      text = read_segments(files, path);
      REQUIRE(text);
      const auto found = audit(*text);
      REQUIRE(found.flaw == "");
      REQUIRE(found.steps == 20);
    }
}

TEST_CASE("a single failing call loses no synced step of a segmented ledger", "[storage]") {
  MemoryFiles counting;
  REQUIRE(write_in_segments(counting) == 20);
  for (std::int64_t call = 0; call < counting.calls(); ++call) {
    INFO("failing call " << call);
    MemoryFiles files;
    files.set_faults({.crash_at = {}, .failing_call = call, .capacity = {}});
    const auto synced = write_in_segments(files);
    files.restart({});
    if (synced == 0) continue;
    const auto found = audit(*read_segments(files, path));
    REQUIRE(found.flaw == "");
    REQUIRE(found.steps >= synced);
  }
}

TEST_CASE("a ledger knows the numbers of the last steps that changed weights", "[storage]") {
  MemoryFiles files;
  // Small segments, so that the losses are spread over several.
  auto ledger = Ledger::open(files, path, ledger_terms, 1'000);
  REQUIRE(ledger);
  const auto enter = [&](std::int64_t number, double loss) {
    auto entered = step(number);
    entered.loss = loss;
    if (loss == 100) entered.norm = 0.5;
    REQUIRE(ledger->enter(entered));
  };
  REQUIRE(ledger->begin(0));
  for (std::int64_t number = 1; number <= 20; ++number) enter(number, static_cast<double>(number));
  REQUIRE(ledger->begin(16));
  for (std::int64_t number = 17; number <= 18; ++number) enter(number, 100.0);
  // Every third step is skipped.
  using Numbers = std::map<std::int64_t, StepNumbers>;
  CHECK(*ledger->numbers_until(17, 3) == Numbers{{14, {14}}, {16, {16}}, {17, {100, 0.5}}});
  CHECK(*ledger->numbers_until(5, 9) == Numbers{{1, {1}}, {2, {2}}, {4, {4}}, {5, {5}}});
  CHECK(ledger->numbers_until(0, 3)->empty());
}

TEST_CASE("an audit knows the steps that were left out", "[storage]") {
  const auto ledger_with = [](bool is_skipped) {
    MemoryFiles files;
    auto ledger = Ledger::open(files, path, ledger_terms);
    REQUIRE(ledger);
    REQUIRE(ledger->begin(0));
    const auto enter = [&](std::int64_t number, bool skipped) {
      auto entered = step(number);
      entered.is_skipped = skipped;
      if (skipped) entered.loss = std::numeric_limits<double>::quiet_NaN();
      REQUIRE(ledger->enter(entered));
    };
    enter(1, false);
    enter(2, false);
    auto terms = ledger_terms;
    terms.left_out = {2};
    ledger->change(terms);
    REQUIRE(ledger->begin(1));
    enter(2, is_skipped);
    return text_of(files);
  };
  const auto good = audit(ledger_with(true));
  CHECK(good.flaw == "");
  CHECK(good.skipped == 1);
  CHECK(good.left_out == std::vector<std::int64_t>{2});
  CHECK(audit(ledger_with(false)).flaw ==
        "line 5: step 2 is to leave out its samples, but it changed weights");
}

TEST_CASE("steps that are left out later are a flaw if they are done", "[storage]") {
  MemoryFiles files;
  auto ledger = Ledger::open(files, path, ledger_terms);
  REQUIRE(ledger);
  REQUIRE(ledger->begin(0));
  for (std::int64_t number = 1; number <= 2; ++number) REQUIRE(ledger->enter(step(number)));
  auto terms = ledger_terms;
  terms.left_out = {2};
  ledger->change(terms);
  REQUIRE(ledger->begin(2));
  CHECK(audit(text_of(files)).flaw.find("leaves out other steps before it than the attempt") !=
        std::string::npos);
}
