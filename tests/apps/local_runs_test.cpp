// Runs in a folder are listed without a head, and removed.

#include <filesystem>
#include <string>

#include "apps/program.h"
#include "apps/small_cluster.h"
#include "catch.h"
#include "core/json.h"

using namespace troupe;
using namespace troupe::tests;

namespace {

constexpr const char* classifier_run = R"(
name = "a"
[model]
kind = "mlp"
dims = [16, 4, 2]
[data]
train = "made:gaussians?classes=2"
[batch]
global = 4
[train]
steps = 3
)";

}  // namespace

TEST_CASE("runs of a folder are listed with state, steps, loss, time and size", "[apps]") {
  const Workplace here;
  CHECK(mentions(tests::troupe(here, {"runs", "--local"}).out, "no runs in "));
  here.write("a.toml", classifier_run);
  REQUIRE(tests::troupe(here, {"train", "a.toml", "-q"}).code == 0);
  REQUIRE(tests::troupe(here, {"train", "a.toml", "-q", "--set", "train.steps=5"}).code == 0);
  const Ended listed = tests::troupe(here, {"runs", "--local"});
  INFO(listed.err);
  REQUIRE(listed.code == 0);
  CHECK(mentions(listed.out, "a.1 "));
  CHECK(mentions(listed.out, "3/3"));
  CHECK(mentions(listed.out, "5/5"));
  const Ended json = tests::troupe(here, {"runs", "--local", "--output", "json"});
  const auto first = parse_json(json.out.substr(0, json.out.find('\n')));
  REQUIRE(first.ok());
  CHECK(*first->find("name")->text() == "a");  // The newest comes first.
  CHECK(*first->find("state")->text() == "done");
  CHECK(first->find("loss")->is_number());
  CHECK(first->find("seconds")->number() >= 0);
}

TEST_CASE("a run that was killed is listed as interrupted", "[apps]") {
  const Workplace here;
  std::filesystem::create_directories(here.path() / "runs/a");
  here.write("runs/a/events.jsonl",
             R"({"type":"run.state","run":"a","time":1700000000.5,"state":"running"})"
             "\n");
  CHECK(mentions(tests::troupe(here, {"runs", "--local"}).out, "a    interrupted"));
}

TEST_CASE("rm removes the folder of a run, and nothing that is no run", "[apps]") {
  const Workplace here;
  here.write("a.toml", classifier_run);
  REQUIRE(tests::troupe(here, {"train", "a.toml", "-q"}).code == 0);
  std::filesystem::create_directory(here.path() / "precious");
  const Ended no_run = tests::troupe(here, {"rm", "precious"});
  CHECK(no_run.code == 3);
  CHECK(mentions(no_run.err, "no folder of a run"));
  CHECK(std::filesystem::exists(here.path() / "precious"));
  const Ended nothing = tests::troupe(here, {"rm", "b"});
  CHECK(nothing.code == 3);
  CHECK(mentions(nothing.err, "`troupe runs --local` lists runs"));

  CHECK(tests::troupe(here, {"rm", "a"}).out == "removed a\n");
  CHECK_FALSE(std::filesystem::exists(here.path() / "runs/a"));
}

TEST_CASE("a run of a head cannot be removed while it trains", "[apps]") {
  const SmallCluster cluster;
  cluster.here().write("a.toml", classifier_run);
  REQUIRE(cluster.run({"submit", "a.toml", "--set", "train.steps=100000000"}).code == 0);
  const Ended active = cluster.run({"rm", "a"});
  CHECK(active.code == 3);
  CHECK(mentions(active.err, "stop the run first"));
  CHECK(mentions(cluster.run({"runs", "--local"}).out, "a    running"));
  CHECK(cluster.run({"stop", "a", "--now"}).code == 0);
}
