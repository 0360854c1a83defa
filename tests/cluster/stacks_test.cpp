#include <signal.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "catch.h"
#include "cluster/cluster.h"
#include "core/json.h"

using namespace troupe;
using namespace troupe::tests;

namespace {

/// Asks for stacks as JSON.
Value stacks(const Workplace& here, std::vector<std::string> words) {
  words.insert(words.begin(), "stacks");
  words.insert(words.end(), {"--output", "json"});
  Process asking(here, words);
  (void)asking.wait();
  const auto answer = parse_json(asking.said());
  INFO(asking.said());
  REQUIRE(answer);
  REQUIRE(answer->find("processes"));
  return *answer;
}

const Value::List& list_of(const Value& value, const char* key) {
  const Value* list = value.find(key);
  REQUIRE(list);
  REQUIRE(list->list());
  return *list->list();
}

/// Submits a run of two stages, each on a node of its own.
const std::vector<std::string> run_on_both = {
    "submit",         "gpt.toml", "--wait",    "--set", "train.steps=1000000", "--set",
    "log.every=1",    "--set",    "name=many", "--set", "pipeline.stages=2",   "--set",
    "elastic.nodes=2"};

const Value* named(const Value::List& all, const std::string& name) {
  const auto found =
      std::ranges::find(all, name, [](const Value& one) { return text_of(one, "name"); });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace

TEST_CASE("stacks shows where the threads of a run are, and names a node that is silent",
          "[cluster]") {
  const Workplace here;
  here.write("gpt.toml", gpt);
  Cluster cluster(here, {"alpha", "beta"});
  Process submit(here, run_on_both);
  REQUIRE(submit.says("step 3 "));

  const auto all = stacks(here, {"many"});
  const auto& processes = list_of(all, "processes");
  REQUIRE(processes.size() == 3);
  CHECK(text_of(processes[2], "kind") == "head");
  CHECK(named(list_of(processes[2], "threads"), "run"));
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& node = processes[i];
    INFO(to_json(node));
    CHECK(text_of(node, "kind") == "node");
    const auto& devices = list_of(node, "devices");
    REQUIRE(devices.size() == 1);
    // A device is in a computation, or waits for one, in the executor's function.
    const Value* device =
        named(list_of(node, "threads"), "device " + text_of(devices[0], "device"));
    REQUIRE(device);
    CHECK(to_json(*device).find("troupe::actors::ComputingThread::run") != std::string::npos);
    CHECK(named(list_of(node, "threads"), "heart"));
  }

  const auto of_stage = stacks(here, {"many", "--stage", "1"});
  const auto& holders = list_of(of_stage, "processes");
  REQUIRE(holders.size() == 1);
  CHECK(to_json(list_of(holders[0], "devices")) == R"([{"device":1,"stages":[1]}])");
  for (const auto& thread : list_of(holders[0], "threads"))
    CHECK(text_of(thread, "name") == "device 1");

  // The head notices soon that beta is silent.
  const auto beta = cluster.node_process(1);
  REQUIRE(kill(beta, SIGSTOP) == 0);
  Process silent(here, {"stacks", "--node", "beta"});
  CHECK(silent.wait() == 1);
  INFO(silent.said());
  CHECK(silent.said().find("error: node beta: it was lost before it answered") !=
        std::string::npos);
  REQUIRE(kill(beta, SIGCONT) == 0);
}

TEST_CASE("SIGQUIT makes a run in one process print its stacks, and it goes on", "[cluster]") {
  const Workplace here;
  here.write("gpt.toml", gpt);
  Process train(here, {"train", "gpt.toml", "--set", "train.steps=1000000", "--set", "log.every=1",
                       "--set", "name=one", "--output", "plain"});
  REQUIRE(train.says("step 3 "));
  train.send(SIGQUIT);
  REQUIRE(train.says("where the threads of this process are:"));
  CHECK(train.says("device 0 (thread "));
  CHECK(train.says("troupe::actors::ComputingThread::run"));
  CHECK(train.says_once_more("step "));
  train.send(SIGINT);
  CHECK(train.wait() == 75);
}

TEST_CASE("probe measures the ways between all nodes by each carrier, and the run goes on",
          "[cluster]") {
  const Workplace here;
  here.write("gpt.toml", gpt);
  Cluster cluster(here, {"alpha", "beta"});
  Process submit(here, run_on_both);
  REQUIRE(submit.says("step 3 "));
  Process asking(here, {"probe", "many", "--output", "json"});
  CHECK(asking.wait() == 0);
  INFO(asking.said());
  const auto answer = parse_json(asking.said());
  REQUIRE(answer);
  std::vector<std::string> ways;
  for (const auto& link : list_of(*answer, "links")) {
    ways.push_back(text_of(link, "from") + " " + text_of(link, "to") + " " +
                   text_of(link, "carrier"));
    CHECK(number_in(link, "round_trip") > 0);
    CHECK_FALSE(link.find("why"));
  }
  std::ranges::sort(ways);
  CHECK(ways == std::vector<std::string>{"alpha beta shm", "alpha beta tcp", "beta alpha shm",
                                         "beta alpha tcp", "head alpha control",
                                         "head beta control"});
  // Two parcels of 128 KiB, and three of a byte, for each way by each carrier.
  CHECK(number_in(*answer, "bytes") == 4 * (2 * 128 * 1024 + 3));
  submit.see_all();
  CHECK(submit.says_once_more("step "));
  CHECK(events(here, "many", "run.recovered").empty());

  // A second probe opens new doors.
  Process again(here, {"probe"});
  CHECK(again.wait() == 0);
  CHECK(again.said().find("alpha  beta   tcp") != std::string::npos);
}
