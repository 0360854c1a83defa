#include "storage/checkpoint/evaluation_log.h"

#include "catch.h"
#include "storage/files/memory_files.h"

using namespace troupe;
using namespace troupe::storage;

namespace {

const std::string path = "runs/r/evaluations";

using Steps = std::vector<EvaluatedStep>;

}  // namespace

TEST_CASE("evaluations of later steps are taken back by an attempt that begins before them",
          "[storage]") {
  MemoryFiles files;
  REQUIRE(files.make_directory("runs/r"));
  {
    auto log = EvaluationLog::open(files, path);
    REQUIRE(log);
    REQUIRE(log->begin(0));
    CHECK_FALSE(*files.exists(path));
    REQUIRE(log->enter({10, 0.1 + 0.2}));
    REQUIRE(log->enter({20, 1.25}));
    REQUIRE(log->enter({30, 1e-300}));
    REQUIRE(log->begin(20));
    CHECK(log->all() == Steps{{10, 0.1 + 0.2}, {20, 1.25}});
    REQUIRE(log->enter({30, 1.5}));
    REQUIRE(log->sync());
  }
  const auto again = EvaluationLog::open(files, path);
  REQUIRE(again);
  CHECK(again->all() == Steps{{10, 0.1 + 0.2}, {20, 1.25}, {30, 1.5}});
}

TEST_CASE("an evaluation that the disk refuses is written later, and no save comes before",
          "[storage]") {
  MemoryFiles files;
  REQUIRE(files.make_directory("runs/r"));
  auto log = EvaluationLog::open(files, path);
  REQUIRE(log);
  files.set_faults({.crash_at = {}, .failing_call = {}, .capacity = 0});
  CHECK_FALSE(log->enter({10, 1.5}));
  CHECK_FALSE(log->sync());
  files.set_faults({});
  REQUIRE(log->sync());
  CHECK(EvaluationLog::open(files, path)->all() == Steps{{10, 1.5}});
}
