#include <algorithm>

#include "catch.h"
#include "storage/checkpoint/checkpoint.h"
#include "storage/checkpoint/ledger.h"
#include "storage/files/memory_files.h"
#include "tests/storage/checkpoint_content.h"

using namespace troupe;
using namespace troupe::storage;

// A disk with errors when it is asked which files exist.

namespace {

constexpr int keep = 2;

Status save_and_prune(Files& files, std::int64_t step) {
  MemoryPool pool;
  auto saved = save_checkpoint(files, "run", content_of(pool, step));
  if (!saved) return saved.error();
  auto pruned = prune_checkpoints(files, "run", {keep});
  if (!pruned) return pruned.error();
  return Done{};
}

std::vector<std::int64_t> good_steps(Files& files) {
  std::vector<std::int64_t> steps;
  const auto listed = list_checkpoints(files, "run");
  REQUIRE(listed);
  for (const auto& each : *listed)
    if (const auto opened = Checkpoint::open(files, each.directory); opened && is_whole(*opened))
      steps.push_back(each.step);
  return steps;
}

}  // namespace

TEST_CASE("a failing read during a save or a prune removes no good checkpoint", "[storage]") {
  int failed = 0;
  bool is_beyond = false;
  for (std::int64_t number = 0; !is_beyond; ++number) {
    MemoryFiles files;
    for (std::int64_t step = 1; step <= 3; ++step) REQUIRE(save_and_prune(files, step));
    REQUIRE(good_steps(files) == std::vector<std::int64_t>{3, 2});
    const auto last_look = files.looks() + number;
    files.set_faults(
        {.crash_at = {}, .failing_call = {}, .capacity = {}, .failing_look = last_look});
    const auto done = save_and_prune(files, 4);
    is_beyond = files.looks() <= last_look;
    files.set_faults({});
    INFO("look " << number << (done ? "" : ": " + done.error().text));
    failed += !done;
    const auto good = good_steps(files);
    REQUIRE(std::ranges::count(good, 3) == 1);
    REQUIRE(good.size() >= keep);
    if (done) REQUIRE(good.front() == 4);
    // Leftover files do not block the next save.
    REQUIRE(save_and_prune(files, 5));
    REQUIRE(good_steps(files).front() == 5);
  }
  CHECK(failed >= 5);
}

TEST_CASE("a failing read at the start is an error or skips to an older checkpoint", "[storage]") {
  bool is_beyond = false;
  int passed_over = 0;
  for (std::int64_t number = 0; !is_beyond; ++number) {
    MemoryFiles files;
    for (std::int64_t step = 1; step <= 2; ++step) REQUIRE(save_and_prune(files, step));
    const auto last_look = files.looks() + number;
    files.set_faults(
        {.crash_at = {}, .failing_call = {}, .capacity = {}, .failing_look = last_look});
    const auto newest = open_newest_checkpoint(files, "run");
    is_beyond = files.looks() <= last_look;
    INFO("look " << number);
    if (!newest) {
      REQUIRE(newest.error().text.find("Input/output error") != std::string::npos);
      continue;
    }
    REQUIRE(newest->has_value());
    const auto& [checkpoint, skipped] = **newest;
    REQUIRE(checkpoint.manifest().step == (skipped.empty() ? 2 : 1));
    passed_over += !skipped.empty();
  }
  CHECK(passed_over > 2);
}

TEST_CASE("a checkpoint folder that cannot be read is an error", "[storage]") {
  MemoryFiles files;
  REQUIRE(save_and_prune(files, 1));
  files.set_faults(
      {.crash_at = {}, .failing_call = {}, .capacity = {}, .failing_look = files.looks()});
  const auto listed = list_checkpoints(files, "run");
  REQUIRE_FALSE(listed);
  CHECK(listed.error().text == "run: Input/output error");
  CHECK(list_checkpoints(files, "nowhere")->empty());
}

TEST_CASE("a save removes unfinished older steps and keeps later ones", "[storage]") {
  MemoryFiles files;
  REQUIRE(files.make_directory("run/step-000000000003"));
  REQUIRE(files.make_directory("run/step-000000000009"));
  REQUIRE(save_and_prune(files, 5));
  CHECK_FALSE(*files.exists("run/step-000000000003"));
  CHECK(*files.exists("run/step-000000000009"));
}

TEST_CASE("a ledger reports which step was saved last", "[storage]") {
  const LedgerTerms terms = {SampleOrder::Kind::shuffled, 7, 10, 4, 2};
  MemoryFiles files;
  CHECK_FALSE(newest_save(files, "ledger")->has_value());
  const auto live = [&](std::int64_t from, std::int64_t to) {
    auto ledger = Ledger::open(files, "ledger", terms);
    REQUIRE((ledger && ledger->begin(from)));
    for (auto step = from + 1; step <= to; ++step) {
      const auto first = (step - 1) * terms.global;
      REQUIRE(ledger->enter({step, first, terms.global, ids_of(terms, first), {}, 0.5}));
    }
    return std::move(*ledger);
  };
  {
    auto ledger = live(0, 3);
    REQUIRE(ledger.saved(2, "here"));
  }
  auto newest = newest_save(files, "ledger");
  REQUIRE((newest && *newest));
  CHECK((*newest)->step == 2);
  CHECK((*newest)->below == "here");
  // The state after a crash of the machine gives the same answers.
  files.restart({});
  CHECK((*newest_save(files, "ledger"))->step == 2);
  CHECK(Ledger::open(files, "ledger", terms)->steps() == 3);
  (void)live(2, 5);
  CHECK((*newest_save(files, "ledger"))->step == 2);
  const auto found = audit(files.read("ledger")->text());
  CHECK(found.flaw == "");
  CHECK(found.steps == 5);
  // A deliberate new start finds no save.
  (void)live(0, 1);
  CHECK_FALSE(newest_save(files, "ledger")->has_value());
}
