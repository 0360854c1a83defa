#include <algorithm>

#include "catch.h"
#include "storage/checkpoint/checkpoint.h"
#include "storage/checkpoint/ledger.h"
#include "storage/files/memory_files.h"
#include "tests/storage/checkpoint_content.h"

using namespace troupe;
using namespace troupe::storage;

// Plays the storage calls of a whole run with a fault at each call.

namespace {

using Entries = Survival::Entries;
using Contents = Survival::Contents;

const LedgerTerms terms = {SampleOrder::Kind::shuffled, 7, 10, 4, 2};
constexpr std::int64_t last_step = 6;
constexpr std::int64_t save_every = 2;
constexpr int keep = 2;

/// The saves that the storage reported as complete.
struct Told {
  std::int64_t saved = 0;  // The newest saved step.
  int saves = 0;
};

LedgerStep entry(std::int64_t step) {
  const auto first = (step - 1) * terms.global;
  return {step, first, terms.global, ids_of(terms, first), {}, 0.5};
}

Status save(Files& files, Ledger& ledger, std::int64_t step) {
  // The ledger must contain the steps before their checkpoint.
  if (auto synced = ledger.sync(); !synced) return synced;
  MemoryPool pool;
  auto saved = save_checkpoint(files, "run/checkpoints", content_of(pool, step));
  if (!saved) return saved.error();
  return Done{};
}

/// Continues from the newest checkpoint to the last step. Returns an error if the run could not
/// start or the last step could not be saved.
Status live(Files& files, Told& told) {
  const auto newest = open_newest_checkpoint(files, "run/checkpoints");
  if (!newest) return newest.error();
  std::int64_t step = *newest ? (*newest)->checkpoint.manifest().step : 0;
  auto ledger = Ledger::open(files, "run/ledger", terms);
  if (!ledger) return ledger.error();
  (void)ledger->begin(step);
  Status saved = Done{};
  while (step < last_step) {
    (void)ledger->enter(entry(++step));
    if (step % save_every != 0) continue;
    // Training continues if a step cannot be saved.
    saved = save(files, *ledger, step);
    if (!saved) continue;
    told.saved = step;
    ++told.saves;
    (void)prune_checkpoints(files, "run/checkpoints", {keep});
  }
  return saved;
}

/// Checks that no reported save is lost, no file is wrong, and the run can be finished.
void check_and_finish(MemoryFiles& files, Told told) {
  const auto newest = open_newest_checkpoint(files, "run/checkpoints");
  REQUIRE(newest);
  REQUIRE((newest->has_value() || told.saves == 0));
  if (*newest) {
    REQUIRE((*newest)->checkpoint.manifest().step >= told.saved);
    REQUIRE(is_whole((*newest)->checkpoint));
  }
  int good = 0;
  for (const auto& each : *list_checkpoints(files, "run/checkpoints")) {
    REQUIRE(each.state != ListedCheckpoint::State::damaged);
    if (each.state == ListedCheckpoint::State::unfinished) continue;
    const auto opened = Checkpoint::open(files, each.directory);
    REQUIRE(opened);
    REQUIRE(is_whole(*opened));
    ++good;
  }
  REQUIRE(good >= std::min(keep, told.saves));

  const auto finished = live(files, told);
  INFO((finished ? "" : finished.error().text));
  REQUIRE(finished);
  files.restart({});
  const auto found = audit(files.read("run/ledger")->text());
  REQUIRE(found.flaw == "");
  REQUIRE(found.steps == last_step);
  REQUIRE((*open_newest_checkpoint(files, "run/checkpoints"))->checkpoint.manifest().step ==
          last_step);
}

std::vector<Survival> survivals(std::uint64_t drawn) {
  std::vector<Survival> all;
  for (const auto entries : {Entries::lost, Entries::kept})
    for (const auto contents : {Contents::lost, Contents::torn, Contents::kept})
      all.push_back({entries, contents, 0});
  for (std::uint64_t seed = 1; seed <= drawn; ++seed)
    all.push_back({Entries::drawn, Contents::drawn, seed});
  return all;
}

std::int64_t calls_of_a_life() {
  MemoryFiles files;
  Told told;
  REQUIRE(live(files, told));
  REQUIRE(told.saves == last_step / save_every);
  return files.calls();
}

}  // namespace

TEST_CASE("a crash at any call of a run loses nothing that was reported as saved", "[storage]") {
  const auto calls = calls_of_a_life();
  REQUIRE(calls > 60);
  for (const auto& survival : survivals(6))
    for (std::int64_t call = 0; call <= calls; ++call) {
      MemoryFiles files;
      files.set_faults({.crash_at = call, .failing_call = {}, .capacity = {}});
      Told told;
      (void)live(files, told);
      files.restart(survival);
      INFO("crash at call " << call << ", seed " << survival.seed);
      check_and_finish(files, told);
    }
}

TEST_CASE("a second crash at any later call loses nothing either", "[storage]") {
  const auto calls = calls_of_a_life();
  for (std::int64_t first = 1; first <= calls; first += 4)
    for (std::int64_t second = 0; second <= calls; second += 3) {
      MemoryFiles files;
      files.set_faults({.crash_at = first, .failing_call = {}, .capacity = {}});
      Told told;
      (void)live(files, told);
      const auto seed = static_cast<std::uint64_t>(first * 1000 + second);
      files.restart({Entries::drawn, Contents::drawn, seed});
      files.set_faults({.crash_at = files.calls() + second, .failing_call = {}, .capacity = {}});
      (void)live(files, told);
      files.restart({Entries::drawn, Contents::drawn, seed + 1});
      INFO("crashes at calls " << first << " and " << second << " after it");
      check_and_finish(files, told);
    }
}

TEST_CASE("most runs survive a failing call and a later crash loses nothing", "[storage]") {
  const auto calls = calls_of_a_life();
  int went_on = 0;
  for (const auto& survival : survivals(3))
    for (std::int64_t call = 0; call < calls; ++call) {
      MemoryFiles files;
      files.set_faults({.crash_at = {}, .failing_call = call, .capacity = {}});
      Told told;
      went_on += live(files, told).ok();
      files.restart(survival);
      INFO("failing call " << call << ", seed " << survival.seed);
      check_and_finish(files, told);
    }
  // Only a fault at the very beginning or in the last save ends a run.
  CHECK(went_on > 9 * calls / 2);
}

TEST_CASE("a disk that is full from any byte on stops only saving", "[storage]") {
  bool finished = false;
  for (std::uint64_t capacity = 0; !finished; capacity += 97) {
    MemoryFiles files;
    files.set_faults({.crash_at = {}, .failing_call = {}, .capacity = capacity});
    Told told;
    finished = live(files, told).ok();
    INFO("room for " << capacity << " bytes");
    // Free space returns, before or after a crash.
    if (capacity % 2 == 0) files.set_faults({});
    if (capacity % 2 != 0) files.restart({});
    check_and_finish(files, told);
  }
}
