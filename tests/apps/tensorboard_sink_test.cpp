#include "apps/events/tensorboard_sink.h"

#include <string>

#include "apps/events/event.h"
#include "catch.h"
#include "core/threads/real_env.h"
#include "storage/files/memory_files.h"

using namespace troupe;
using namespace troupe::apps;
using namespace troupe::storage;

// tests/clients/tensorboard_test.py reads such files with the library of protocol buffers.

namespace {

RealEnv env;

Value numbered(transport::MessageName type, int step, double loss) {
  Value value = event(type, "r");
  value.set("step", step);
  value.set("loss", loss);
  value.set("time", 1'700'000'000.0 + step);
  return value;
}

/// Returns the content of all files of a folder, in the order of their names.
std::vector<std::string> contents(MemoryFiles& files, const std::string& folder) {
  std::vector<std::string> all;
  const auto entries = files.list(folder);
  REQUIRE(entries);
  for (const auto& entry : *entries)
    all.emplace_back(files.read(folder + "/" + entry.name)->text());
  return all;
}

}  // namespace

TEST_CASE("the checksums of files for TensorBoard are those of the standard", "[apps]") {
  // RFC 3720, B.4, and the usual check value.
  CHECK(crc32c("123456789") == 0xe3069283);
  CHECK(crc32c(std::string(32, '\0')) == 0x8a9136aa);
  CHECK(crc32c(std::string(32, '\xff')) == 0x62a8ab43);
  CHECK(crc32c("") == 0);
  CHECK(tensorboard_record("").size() == 16);
}

TEST_CASE("a run without numbers leaves no file for TensorBoard", "[apps]") {
  MemoryFiles files;
  TensorboardSink sink(env, files, "t");
  sink.event(event("run.state", "r"));
  Value empty = event("step", "r");
  empty.set("step", 1);
  sink.event(empty);
  CHECK_FALSE(*files.exists("t"));
}

TEST_CASE("each life of a run begins a file for TensorBoard", "[apps]") {
  MemoryFiles files;
  for (int life = 0; life < 2; ++life) {
    TensorboardSink sink(env, files, "t");
    sink.event(numbered("step", 10 * life + 1, 2));
    sink.event(numbered("eval", 10 * life + 1, 2));
  }
  const auto all = contents(files, "t");
  REQUIRE(all.size() == 2);
  for (const auto& content : all) {
    CHECK(content.find("brain.Event:2") != std::string::npos);
    CHECK(content.find("train/loss") != std::string::npos);
    CHECK(content.find("validation/loss") != std::string::npos);
  }
}

TEST_CASE("after an error of the disk, numbers for TensorBoard go to another file", "[apps]") {
  MemoryFiles files;
  TensorboardSink sink(env, files, "t");
  sink.event(numbered("step", 1, 2));
  files.set_faults({.crash_at = {}, .failing_call = files.calls(), .capacity = {}});
  sink.event(numbered("step", 2, 2));
  sink.event(numbered("step", 3, 2));
  const auto all = contents(files, "t");
  REQUIRE(all.size() == 2);
  CHECK(all[0].find("train/loss") != std::string::npos);
  CHECK(all[1].find("train/loss") != std::string::npos);
}

TEST_CASE("TensorBoard is told to forget the steps that a run repeats", "[apps]") {
  MemoryFiles files;
  TensorboardSink sink(env, files, "t");
  for (const int step : {1, 2, 3, 2}) sink.event(numbered("step", step, 2));
  sink.event(numbered("eval", 2, 2));
  // Field 7 of an Event, a SessionLog whose status is START.
  const std::string begins = "\x3a\x02\x08\x01";
  const auto content = contents(files, "t").at(0);
  int times = 0;
  for (auto at = content.find(begins); at != content.npos; at = content.find(begins, at + 1))
    ++times;
  CHECK(times == 2);
}
