#include "storage/checkpoint/checkpoint_writer.h"

#include <future>

#include "catch.h"
#include "core/threads/real_env.h"
#include "storage/files/memory_files.h"
#include "tests/storage/checkpoint_content.h"

using namespace troupe;
using namespace troupe::storage;
using namespace std::chrono_literals;

namespace {

/// Returns whether the writer is idle within this time.
bool is_idle(CheckpointWriter& writer, std::chrono::milliseconds patience) {
  const auto idle = std::make_shared<std::promise<void>>();
  writer.when_idle([idle] { idle->set_value(); });
  return idle->get_future().wait_for(patience) == std::future_status::ready;
}

}  // namespace

TEST_CASE("a background save reports its outcome and prunes", "[storage]") {
  RealEnv env;
  MemoryFiles files;
  MemoryPool pool;
  std::vector<std::int64_t> done;
  CheckpointWriter writer(env, files, {"run", 2}, [&](const SaveOutcome& outcome) {
    if (outcome.saved && outcome.pruned) done.push_back(outcome.step);
  });
  for (const std::int64_t step : {1, 2, 3}) {
    REQUIRE(writer.submit(content_of(pool, step)));
    REQUIRE(is_idle(writer, 10s));
  }
  CHECK(done == std::vector<std::int64_t>{1, 2, 3});
  const auto listed = list_checkpoints(files, "run");
  REQUIRE(listed->size() == 2);
  CHECK((*listed)[0].step == 3);
  CHECK((*listed)[1].step == 2);
}

TEST_CASE("the writer accepts one running save and one waiting save and refuses a third",
          "[storage]") {
  RealEnv env;
  MemoryFiles files;
  MemoryPool pool;
  std::promise<void> release;
  auto released = release.get_future().share();
  std::vector<std::int64_t> done;
  {
    CheckpointWriter writer(env, files, {"run", 5}, [&](const SaveOutcome& outcome) {
      released.wait();
      done.push_back(outcome.step);
    });
    REQUIRE(writer.submit(content_of(pool, 1)));
    REQUIRE(writer.submit(content_of(pool, 2)));
    const auto third = writer.submit(content_of(pool, 3));
    REQUIRE_FALSE(third);
    CHECK(
        third.error().text ==
        "run: step 3 is not saved: the disk is too slow; step 1 is being written and step 2 waits");
    CHECK_FALSE(is_idle(writer, 1ms));
    release.set_value();
    REQUIRE(is_idle(writer, 10s));
  }
  CHECK(done == std::vector<std::int64_t>{1, 2});
  CHECK(list_checkpoints(files, "run")->size() == 2);
}

TEST_CASE("a failed save is reported and the next save succeeds", "[storage]") {
  RealEnv env;
  MemoryFiles files;
  MemoryPool pool;
  std::vector<std::string> outcomes;
  CheckpointWriter writer(env, files, {"run", 2}, [&](const SaveOutcome& outcome) {
    outcomes.push_back(outcome.saved ? "saved" : outcome.saved.error().text.substr(0, 11));
  });
  REQUIRE(writer.submit(content_of(pool, 1)));
  REQUIRE(is_idle(writer, 10s));
  files.set_faults({.crash_at = {}, .failing_call = {}, .capacity = 100});
  REQUIRE(writer.submit(content_of(pool, 2)));
  REQUIRE(is_idle(writer, 10s));
  files.set_faults({});
  REQUIRE(writer.submit(content_of(pool, 3)));
  REQUIRE(is_idle(writer, 10s));
  CHECK(outcomes == std::vector<std::string>{"saved", "run: step 2", "saved"});
  CHECK(list_checkpoints(files, "run")->size() == 2);
}
