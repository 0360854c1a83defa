// The head knows runs: tests of what tables, its log and its answers say of them.

#include <sstream>
#include <string>

#include "apps/program.h"
#include "apps/quickstart.h"
#include "apps/small_cluster.h"
#include "catch.h"

using namespace troupe;
using namespace troupe::tests;

TEST_CASE("a head says and remembers how a run ended", "[apps]") {
  SmallCluster cluster;
  REQUIRE(cluster.run({"submit", quickstart, "--set", "train.steps=20", "--wait"}).code == 0);
  const auto row = [&] {
    const std::string table = cluster.run({"runs"}).out;
    const auto begin = table.find("quickstart");
    REQUIRE(begin != std::string::npos);
    const auto end = table.find(" %", begin);
    REQUIRE(end != std::string::npos);
    return table.substr(begin, end - begin);
  };
  CHECK(cluster.head().says("run quickstart was submitted: 20 steps"));
  CHECK(cluster.head().says("run quickstart: done after step 20 of 20"));
  const std::string before = row();
  CHECK(before.find("20/20") != std::string::npos);
  CHECK(before.find(" 0.0000") == std::string::npos);
  cluster.kill_head();
  cluster.start_head();
  CHECK(row() == before);
}

TEST_CASE("a run that has done no step has no loss and no goodput", "[apps]") {
  SmallCluster cluster;
  // It waits for a second node.
  REQUIRE(cluster.run({"submit", quickstart, "--set", "elastic.nodes=2:2"}).code == 0);
  const Ended runs = cluster.run({"runs"});
  INFO(runs.out);
  CHECK(runs.out.find("  0/400     -        -") != std::string::npos);
  CHECK(runs.out.find("0.0000") == std::string::npos);
  CHECK(cluster.run({"runs", "--output", "json"}).out.find("\"loss\"") == std::string::npos);
}

TEST_CASE("an order to a run is answered with what happens now", "[apps]") {
  SmallCluster cluster;
  REQUIRE(cluster.run({"submit", quickstart, "--set", "train.steps=100000"}).code == 0);
  const auto answers = [&](const std::string& order, const std::string& text) {
    const Ended ended = cluster.run({order, "quickstart"});
    INFO(ended.out << ended.err);
    CHECK(ended.code == 0);
    CHECK(ended.out.starts_with("quickstart: " + text + "; step "));
    CHECK(ended.out.ends_with(" of 100000 is done\n"));
  };
  answers("pause", "pausing after the steps under way");
  answers("resume", "running");
  CHECK(cluster.run({"runs"}).out.find("expected time of a step: ") != std::string::npos);
  answers("stop", "stopping after the steps under way");
}

TEST_CASE("tables of a usual cluster fit 80 columns", "[apps]") {
  SmallCluster cluster;
  REQUIRE(cluster.run({"submit", quickstart, "--set", "train.steps=20", "--wait"}).code == 0);
  for (const std::string command : {"status", "top"}) {
    const std::string shown = cluster.run({command}).out;
    INFO(shown);
    CHECK(shown.find("alpha") != std::string::npos);
    CHECK(shown.find("20/20") != std::string::npos);
    std::istringstream lines(shown);
    for (std::string line; std::getline(lines, line);) {
      CHECK(line.size() < 80);
      CHECK_FALSE(line.ends_with(' '));
    }
  }
}
