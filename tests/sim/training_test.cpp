// Runs on simulated clusters, which train for real.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "catch.h"
#include "core/json.h"
#include "tests/sim/cluster.h"
#include "tests/sim/reference.h"

using namespace troupe;
using namespace troupe::simulation;
using namespace std::chrono_literals;

namespace {

constexpr int steps = 6;

/// A model of three units, of which each stage has at least one.
Value tiny_run(int stages, int copies) {
  auto tree = parse_json(R"({
    "name": "tiny", "seed": 3,
    "model": {"kind": "mlp", "dims": [4, 8, 8, 3]},
    "data": {"train": "made:gaussians?dims=4&classes=3"},
    "batch": {"global": 8, "micro": 2},
    "optimizer": {"kind": "sgd", "lr": 0.05, "momentum": 0.9},
    "precision": {"compute": "fp32"},
    "pipeline": {"stages": )" +
                         std::to_string(stages) + R"(},
    "elastic": {"nodes": "1:2", "copies": )" +
                         std::to_string(copies) + R"(},
    "checkpoint": {"every": "3 steps"},
    "train": {"steps": )" +
                         std::to_string(steps) + R"(}})");
  REQUIRE(tree);
  return *tree;
}

std::string weights_of(const std::vector<Value>& events) {
  std::string weights;
  for (const auto& event : events)
    if (*event.find("type")->text() == "checkpoint.saved") weights = *event.find("weights")->text();
  return weights;
}

std::vector<Value> events_of(SimulatedMachine& head) {
  std::vector<Value> events;
  const auto bytes = head.disk.files().read("runs/tiny/events.jsonl");
  if (!bytes) return events;
  std::string text(bytes->text());
  for (std::size_t at = 0, end = 0; (end = text.find('\n', at)) != text.npos; at = end + 1)
    if (auto event = parse_json(text.substr(at, end - at))) events.push_back(std::move(*event));
  return events;
}

int last_step(const std::vector<Value>& events) {
  int step = 0;
  for (const auto& event : events)
    if (*event.find("type")->text() == "step")
      step = std::max(step, static_cast<int>(*event.find("step")->integer()));
  return step;
}

enum class Harm { none, node_killed };

struct Trained {
  std::string state, why, weights;
  int recoveries = 0;
  std::uint64_t hash = 0;
  std::vector<std::string> history;
};

/// A head and two nodes, each on a machine of its own, train the run.
Trained trained(const Scheduler::Options& options, Harm harm, int copies) {
  SimulatedCluster cluster(options);
  auto& alpha = cluster.add_machine("alpha");
  auto& beta = cluster.add_machine("beta");
  auto& gamma = cluster.add_machine("gamma");
  auto& head = cluster.start_head(alpha);
  auto& first = cluster.start_node(beta, alpha);
  auto& second = cluster.start_node(gamma, alpha);
  const auto has_joined = [](const NodeLife& node) { return node.has_said("joined"); };
  REQUIRE(cluster.run_until([&] { return has_joined(first) && has_joined(second); }));
  const auto submitted = cluster.ask(alpha, "run.submit", tiny_run(2, copies));
  INFO((submitted ? "" : submitted.error().text));
  REQUIRE(submitted);
  if (harm == Harm::node_killed) {
    const int step = 1 + static_cast<int>(cluster.scheduler().draw(steps - 2));
    CHECK(cluster.run_until([&] { return last_step(events_of(alpha)) >= step; }));
    second.process->kill();
  }
  Trained trained;
  const auto look = [&] {
    const auto run = cluster.run(alpha, "tiny");
    trained.state = run.find("state") ? *run.find("state")->text() : "";
    trained.why = run.find("why") ? *run.find("why")->text() : "";
    trained.recoveries =
        run.find("recoveries") ? static_cast<int>(*run.find("recoveries")->integer()) : 0;
    return trained.state == "done" || trained.state == "failed" || trained.state == "stopped";
  };
  for (int i = 0; i < 300 && !look(); ++i) (void)cluster.run_until([] { return false; }, 200ms);
  trained.weights = weights_of(events_of(alpha));
  CHECK(head.process->is_alive());
  trained.hash = cluster.scheduler().trace_hash();
  trained.history = cluster.scheduler().history();
  return trained;
}

std::string last_lines(const std::vector<std::string>& lines) {
  std::string text;
  for (std::size_t i = lines.size() > 60 ? lines.size() - 60 : 0; i < lines.size(); ++i)
    text += lines[i] + "\n";
  return text;
}

/// Returns where two histories begin to differ, with what happened before.
std::string first_difference(const std::vector<std::string>& one,
                             const std::vector<std::string>& other) {
  const auto [left, right] = std::ranges::mismatch(one, other);
  const auto before = std::min<std::ptrdiff_t>(left - one.begin(), 12);
  std::string text;
  for (auto line = left - before; line != left; ++line) text += *line + "\n";
  if (left != one.end()) text += "one:   " + *left + "\n";
  if (right != other.end()) text += "other: " + *right + "\n";
  return text;
}

void check_seeds(Harm harm, int copies) {
  const auto weights = really_trained(tiny_run(1, 1)).at(steps).weights;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    Scheduler::Options options{.seed = seed, .manner = static_cast<Scheduler::Manner>(seed % 3)};
    const auto once = trained(options, harm, copies);
    std::string history;
    if (trained(options, harm, copies).hash != once.hash) {
      options.history = Scheduler::History::everything;
      INFO(first_difference(trained(options, harm, copies).history,
                            trained(options, harm, copies).history));
      FAIL("equal seeds give different runs");
    }
    if (once.state != "done" || once.weights != weights) {
      options.history = Scheduler::History::told;
      history = last_lines(trained(options, harm, copies).history);
    }
    INFO(history);
    INFO(once.why);
    REQUIRE(once.state == "done");
    CHECK(once.weights == weights);
    if (harm == Harm::node_killed) CHECK(once.recoveries >= 1);
  }
}

}  // namespace

TEST_CASE("a head can be killed while an order waits for its answer", "[sim]") {
  SimulatedCluster cluster({.seed = 1});
  auto& alpha = cluster.add_machine("alpha");
  auto& beta = cluster.add_machine("beta");
  auto& head = cluster.start_head(alpha);
  auto& node = cluster.start_node(beta, alpha);
  REQUIRE(cluster.run_until([&] { return node.has_said("joined"); }));
  REQUIRE(cluster.ask(alpha, "run.submit", tiny_run(2, 1)));
  REQUIRE(cluster.run_until([&] { return last_step(events_of(alpha)) >= 1; }));
  // Without the node nothing can be saved.
  cluster.scheduler().freeze(node.process->id());
  Value body = Value::Map{};
  body.set("run", "tiny");
  bool is_answered = false;
  cluster.request(alpha, "run.checkpoint", body, [&](const apps::Reply&) { is_answered = true; });
  CHECK_FALSE(cluster.run_until([&] { return is_answered; }, 100ms));
  head.process->kill();
  CHECK_FALSE(cluster.run_until([&] { return is_answered; }, 1s));
}

TEST_CASE("a simulated cluster trains to the weights of one real process", "[sim]") {
  check_seeds(Harm::none, 1);
}

TEST_CASE("a simulated cluster loses a node, and trains to the same weights", "[sim]") {
  SECTION("from checkpoints") { check_seeds(Harm::node_killed, 1); }
  SECTION("from copies in memory") { check_seeds(Harm::node_killed, 2); }
}
