// troupe trace export: its figures match the plan and the run's timeline.

#include <cmath>
#include <filesystem>
#include <sstream>

#include "apps/program.h"
#include "catch.h"
#include "core/json.h"
#include "pprof_reader.h"

using namespace troupe;
using namespace troupe::tests;
using troupe::testing::PprofReader;

namespace {

constexpr std::size_t memory = 0, time_spent = 1, actions = 2;  // Indexes of a sample's values.

const std::vector<std::string> two_stages = {
    (std::filesystem::path(TROUPE_TESTS).parent_path() / "config/gpt-tiny.toml").string(),
    "--set",
    "name=t",
    "--set",
    "pipeline.stages=[0,2,4]",
    "--set",
    "pipeline.chunks=1",
    "--set",
    "pipeline.schedule=1f1b",
    "--set",
    "precision.compute=fp32",
    "--set",
    "train.steps=2",
    "--set",
    "optimizer.schedule.warmup_steps=0"};

/// Runs a command on that configuration with more settings.
Ended with_two_stages(const Workplace& here, std::vector<std::string> command,
                      const std::vector<std::string>& more) {
  command.insert(command.end(), two_stages.begin(), two_stages.end());
  command.insert(command.end(), more.begin(), more.end());
  Ended ended = tests::troupe(here, command);
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  return ended;
}

void train_two_stages(const Workplace& here, const std::vector<std::string>& more = {}) {
  with_two_stages(here, {"train"}, more);
}

Value plan_of_two_stages(const Workplace& here, const std::vector<std::string>& more = {}) {
  const auto plan = parse_json(with_two_stages(here, {"plan", "--output", "json"}, more).out);
  REQUIRE(plan.ok());
  return *plan;
}

Ended export_pprof(const Workplace& here, const std::string& name) {
  return tests::troupe(here, {"trace", "export", name, "--format", "pprof"});
}

std::string in_words(const std::string& action) {
  switch (action[action.find_first_not_of("0123456789")]) {
    case 'F':
      return "forward";
    case 'B':
      return "backward";
    case 'A':
      return "reduce";
    case 'O':
      return "update";
  }
  return "?";
}

/// Requires every stage's bytes to match the plan, on the devices of all replicas.
void require_memory_of_plan(const PprofReader& profile, const Value& plan, int replicas) {
  std::int64_t total = 0;
  const auto& seats = *plan.find("seats")->list();
  for (int replica = 0; replica < replicas; ++replica) {
    for (const auto& seat : seats) {
      const auto position = *seat.find("position")->integer();
      const auto number = position + replica * static_cast<std::int64_t>(seats.size());
      const std::string device = "device " + std::to_string(number);
      const std::string stage = "stage " + std::to_string(*seat.find("stage")->integer());
      CAPTURE(device, stage);
      const Value& bytes = *seat.find("bytes");
      for (const char* held : {"weights", "gradients", "optimizer", "activations", "buffers"}) {
        CAPTURE(held);
        CHECK(profile.sum(memory, {device, stage, held}) == *bytes.find(held)->integer());
      }
      CHECK(profile.sum(memory, {device}) == *bytes.find("total")->integer());
      total += *bytes.find("total")->integer();
    }
  }
  CHECK(profile.sum(memory, {}) == total);
}

/// Requires times and counts of actions to match the sums over the timeline's lines.
void require_times_of_timeline(const PprofReader& profile, const std::string& timeline) {
  std::map<std::set<std::string>, std::pair<double, std::int64_t>> sums;
  std::istringstream lines(timeline);
  std::string text;
  std::getline(lines, text);  // The first line describes the file.
  std::int64_t count = 0;
  for (; std::getline(lines, text); ++count) {
    const auto line = parse_json(text);
    REQUIRE(line.ok());
    const std::string action = *line->find("action")->text();
    auto& [seconds, times] = sums[{"device " + to_json(*line->find("device")),
                                   "stage " + action.substr(0, 1), in_words(action)}];
    seconds += line->find("end")->number() - line->find("start")->number();
    ++times;
  }
  REQUIRE(count > 10);
  for (const auto& [frames, sum] : sums) {
    // Each span is rounded to nanoseconds.
    const auto wanted = sum.first * 1e9;
    CHECK(std::abs(static_cast<double>(profile.sum(time_spent, frames)) - wanted) <=
          static_cast<double>(sum.second));
    CHECK(profile.sum(actions, frames) == sum.second);
  }
  CHECK(profile.sum(actions, {}) == count);
  for (const char* device : {"device 0", "device 1"})
    CHECK(std::abs(profile.sum(time_spent, {device}) - profile.duration) <= count);
}

}  // namespace

TEST_CASE("a run's profile has the plan's bytes by layer, and the timeline's times", "[apps]") {
  const Workplace here;
  train_two_stages(here);
  const Value plan = plan_of_two_stages(here);
  const Ended exported = export_pprof(here, "t");
  INFO(exported.err);
  REQUIRE(exported.code == 0);
  CHECK(exported.err.empty());
  const PprofReader profile(exported.out);
  CHECK(profile.types == std::vector<std::pair<std::string, std::string>>{
                             {"memory", "bytes"}, {"time", "nanoseconds"}, {"actions", "count"}});
  CHECK(profile.default_type == "memory");
  CHECK(profile.file == "t");
  REQUIRE(profile.comments.size() == 5);
  CHECK(profile.comments[0] == "run: t");
  CHECK(profile.comments[1].starts_with("plan: 1f1b, 2 stages, 1 replica, 2 devices"));
  CHECK(profile.comments[4].starts_with("made by troupe "));
  require_memory_of_plan(profile, plan, 1);
  require_times_of_timeline(profile, here.read("runs/t/timeline.jsonl"));

  // Each layer appears on the stage that has it and on no other.
  for (const auto& stage : *plan.find("stages")->list())
    for (const auto& unit : *stage.find("units")->list()) {
      CAPTURE(*unit.text());
      CHECK(profile.sum(memory, {*unit.text(), "weights"}) > 0);
      CHECK(profile.sum(memory, {*unit.text(), "optimizer"}) > 0);
      CHECK(profile.sum(memory, {*unit.text(), "activations"}) > 0);
      const bool is_first = *stage.find("first")->integer() == 0;
      CHECK(profile.sum(memory, {*unit.text(), is_first ? "stage 1" : "stage 0"}) == 0);
    }

  // The output file and the folder's name work like standard output and the run's name.
  const Ended file =
      tests::troupe(here, {"trace", "export", "runs/t", "--format", "pprof", "--out", "memory.pb"});
  CHECK(file.code == 0);
  CHECK(file.out.empty());
  CHECK(here.read("memory.pb") == exported.out);
  // The default format is Perfetto's.
  const Ended trace = tests::troupe(here, {"trace", "export", "t"});
  CHECK(trace.out.starts_with("{\"displayTimeUnit\""));
  CHECK(trace.out == tests::troupe(here, {"trace", "export", "t", "--format", "perfetto"}).out);
}

TEST_CASE("a profile has the devices of every replica", "[apps]") {
  const Workplace here;
  const std::vector<std::string> replicas{"--set", "pipeline.replicas=2"};
  train_two_stages(here, replicas);
  require_memory_of_plan(PprofReader(export_pprof(here, "t").out),
                         plan_of_two_stages(here, replicas), 2);
}

TEST_CASE("a run without a timeline has a profile of its memory", "[apps]") {
  const Workplace here;
  train_two_stages(here);
  std::filesystem::remove(here.path() / "runs/t/timeline.jsonl");
  const Ended ended = export_pprof(here, "t");
  CHECK(ended.code == 0);
  CHECK(ended.err.starts_with("warning: runs/t/timeline.jsonl: it is not there"));
  const PprofReader profile(ended.out);
  CHECK(profile.sum(memory, {}) > 0);
  CHECK(profile.sum(time_spent, {}) == 0);
  CHECK(profile.comments.size() == 4);
}

TEST_CASE("an export error names the file, what was found and what to do", "[apps]") {
  const Workplace here;
  const auto says = [&](const std::string& name, int code, const std::string& part) {
    const Ended ended = export_pprof(here, name);
    CAPTURE(ended.err, part);
    CHECK(ended.code == code);
    CHECK(ended.out.empty());
    CHECK(ended.err.find(part) != std::string::npos);
  };
  says("none", 3,
       "none: there is no such run in runs/, and no such folder; `troupe runs --local` lists runs");
  std::filesystem::create_directories(here.path() / "runs/old");
  here.write("runs/old/timeline.jsonl", "{\"run\":\"old\",\"devices\":1}\n");
  says("old", 3, "runs/old/memory.jsonl: it is not there; wanted what each device holds");
  says("old", 3, "run it again");

  const std::string plan = "{\"run\":\"old\",\"plan\":\"p\",\"devices\":1}\n";
  const auto told = [&](const std::string& text, const std::string& part) {
    here.write("runs/old/memory.jsonl", text);
    says("old", 3, part);
  };
  told("", "runs/old/memory.jsonl: it is empty");
  told("{}", "runs/old/memory.jsonl:1: expected run, plan and devices");
  told(R"({"run":"r","plan":"p","devices":99999999})", "wanted 1 to");
  told(plan + "[", "runs/old/memory.jsonl:2: ");
  told(plan + "{\"device\":0}", ":2: expected device, stage, unit, held and bytes");
  told(plan + R"({"device":1,"stage":0,"unit":"u","held":"weights","bytes":1})",
       ":2: there is no device 1");
  told(plan + R"({"device":0,"stage":-1,"unit":"u","held":"weights","bytes":1})",
       ":2: there is no stage -1");
  told(plan + R"({"device":0,"stage":0,"unit":"u","held":"shoes","bytes":1})",
       "held = \"shoes\": wanted weights, gradients");
  told(plan + R"({"device":0,"stage":0,"unit":"u","held":"weights","bytes":-1})",
       ":2: bytes = -1: wanted 0 to");

  const Ended unknown = tests::troupe(here, {"trace", "export", "old", "--format", "svg"});
  CHECK(unknown.code == 2);
  CHECK(unknown.err.find("--format") != std::string::npos);
}
