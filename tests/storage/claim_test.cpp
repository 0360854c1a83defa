#include "storage/files/claim.h"

#include <algorithm>

#include "catch.h"
#include "core/threads/real_env.h"
#include "storage/checkpoint/checkpoint.h"
#include "storage/files/memory_files.h"
#include "tests/storage/checkpoint_content.h"
#include "tests/storage/temporary_directory.h"

using namespace troupe;
using namespace troupe::storage;

namespace {

RealEnv env;
const Claimant claimant{env, "process 1 on alpha"};

Status save(Files& files, const std::string& root, std::int64_t step, const RootClaim& claim) {
  MemoryPool pool;
  auto saved = save_checkpoint(files, root, content_of(pool, step), &claim);
  return saved ? Status(Done{}) : Status(saved.error());
}

std::vector<std::int64_t> steps_below(Files& files, const std::string& root) {
  std::vector<std::int64_t> steps;
  for (const auto& each : *list_checkpoints(files, root)) steps.push_back(each.step);
  return steps;
}

/// Checks that of two independent processes only one can write in a folder.
void check_one_writer(Files& files, const std::string& root) {
  auto first = RootClaim::take(files, claimant, root, "one");
  REQUIRE(first);
  REQUIRE(save(files, root, 1, *first));
  const auto second = RootClaim::take(files, claimant, root, "two");
  REQUIRE_FALSE(second);
  CHECK(second.error().text.find("/lock: is locked by process 1 on alpha, since 2") !=
        std::string::npos);
  CHECK(second.error().text.find("set another checkpoint.dir") != std::string::npos);
  REQUIRE(save(files, root, 2, *first));
  first->give_back();
  CHECK_FALSE(save(files, root, 3, *first));
  const auto third = RootClaim::take(files, claimant, root, "one");
  REQUIRE(third);
  REQUIRE(save(files, root, 3, *third));
  CHECK(steps_below(files, root) == std::vector<std::int64_t>{3, 2, 1});
}

}  // namespace

TEST_CASE("a checkpoint folder has one writer at a time", "[storage]") {
  MemoryFiles memory;
  check_one_writer(memory, "run");
  const TemporaryDirectory directory;
  check_one_writer(*disk_files(), directory / "run");
}

TEST_CASE("a writer cannot commit or prune after a later claim took its folder", "[storage]") {
  MemoryFiles files;
  const auto first = RootClaim::take(files, claimant, "run", "one");
  REQUIRE((first && save(files, "run", 1, *first)));
  // Simulates a file system without locks: each machine knows only its own.
  REQUIRE(files.remove("run/lock"));
  files.forget_locks();
  const auto second = RootClaim::take(files, claimant, "run", "one");
  REQUIRE((second && save(files, "run", 2, *second)));
  const auto late = save(files, "run", 3, *first);
  REQUIRE_FALSE(late);
  CHECK(late.error().text.find(
            "run/owner: the folder was taken over by process 1 on alpha, since ") == 0);
  CHECK_FALSE(prune_checkpoints(files, "run", {1}, &*first));
  CHECK(steps_below(files, "run") == std::vector<std::int64_t>{2, 1});
}

TEST_CASE("a run prunes only its own checkpoints and resumes from them", "[storage]") {
  MemoryFiles files;
  MemoryPool pool;
  for (const std::string run : {"one", "two"}) {
    const auto claim = RootClaim::take(files, claimant, "run", run);
    REQUIRE(claim);
    const std::int64_t first = run == "one" ? 1 : 11;
    for (auto step = first; step < first + 4; ++step) {
      REQUIRE(save(files, "run", step, *claim));
      REQUIRE(prune_checkpoints(files, "run", {2}, &*claim));
    }
  }
  CHECK(steps_below(files, "run") == std::vector<std::int64_t>{14, 13, 4, 3});
  CHECK((*open_newest_checkpoint(files, "run", "one"))->checkpoint.manifest().step == 4);
  CHECK((*open_newest_checkpoint(files, "run", "two"))->checkpoint.manifest().step == 14);
  CHECK_FALSE(open_newest_checkpoint(files, "run", "three")->has_value());
  // Without a claim, each run keeps its newest checkpoint.
  CHECK(prune_checkpoints(files, "run", {1})->removed.size() == 2);
  CHECK(steps_below(files, "run") == std::vector<std::int64_t>{14, 4});
}

TEST_CASE("a claim that meets a failing call or read loses no checkpoint", "[storage]") {
  for (const bool looks : {false, true})
    for (std::int64_t number = 0; number < 20; ++number) {
      MemoryFiles files;
      {
        const auto claim = RootClaim::take(files, claimant, "run", "one");
        REQUIRE((claim && save(files, "run", 1, *claim)));
      }
      FileFaults faults;
      if (looks)
        faults.failing_look = files.looks() + number;
      else
        faults.failing_call = files.calls() + number;
      files.set_faults(faults);
      INFO("number " << number << (looks ? " of the looks" : " of the calls"));
      {
        const auto claim = RootClaim::take(files, claimant, "run", "one");
        if (claim) (void)save(files, "run", 2, *claim);
      }
      files.set_faults({});
      REQUIRE(is_whole((*open_newest_checkpoint(files, "run", "one"))->checkpoint));
      const auto again = RootClaim::take(files, claimant, "run", "one");
      REQUIRE(again);
      REQUIRE(save(files, "run", 3, *again));
    }
}

TEST_CASE("opening falls back to the older checkpoint if a page cannot be read", "[storage]") {
  MemoryFiles files;
  MemoryPool pool;
  for (std::int64_t step = 1; step <= 2; ++step)
    REQUIRE(save_checkpoint(files, "run", content_of(pool, step)));
  files.spoil_page("run/step-000000000002/weights.safetensors", 0);
  const auto newest = open_newest_checkpoint(files, "run");
  REQUIRE((newest && *newest));
  CHECK((*newest)->checkpoint.manifest().step == 1);
  REQUIRE((*newest)->skipped.size() == 1);
  CHECK((*newest)->skipped[0].why ==
        "run/step-000000000002/weights.safetensors: cannot read: Input/output error");
  // A page that goes bad after verification is an error, too.
  auto opened = Checkpoint::open(files, "run/step-000000000001");
  REQUIRE(opened);
  files.spoil_page("run/step-000000000001/weights.safetensors", 0);
  CHECK_FALSE(opened->load_weight("w", pool));
}
