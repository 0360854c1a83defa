// A replanner on a simulated clock. The test plays the run: it sets how long the steps of each plan
// take, and lets the run change over.

#include "apps/run/replanner.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/run/run_choice.h"
#include "apps/run/run_setup.h"
#include "catch.h"
#include "config/load.h"
#include "core/json.h"
#include "simulation/machine/env.h"
#include "storage/files/memory_files.h"

using namespace troupe;
using namespace troupe::simulation;
using namespace std::chrono_literals;

namespace {

/// A model whose steps take some ten milliseconds on one core, with an open plan.
config::Loaded open_run(const std::string& replan) {
  auto tree = parse_json(R"({
    "name": "open", "seed": 3,
    "model": {"kind": "gpt2", "vocab": 32, "context": 64, "width": 64, "heads": 2, "layers": 4},
    "data": {"train": "made:markov?states=32"},
    "batch": {"global": 32, "micro": 4},
    "optimizer": {"kind": "adamw", "lr": 0.001},
    "precision": {"compute": "fp32"},
    "pipeline": {"stages": "auto", "replicas": "auto", "schedule": "auto"},
    "elastic": {"replan": ")" +
                         replan +
                         R"("},
    "train": {"steps": 100000000}})");
  REQUIRE(tree);
  auto loaded = config::load_message(*tree, "test");
  INFO((loaded ? "" : loaded.error().text));
  REQUIRE(loaded);
  return *loaded;
}

std::vector<actors::NodeHere> nodes_on_hosts(const std::vector<std::string>& names) {
  std::vector<actors::NodeHere> nodes;
  for (const auto& name : names) {
    auto& node = nodes.emplace_back();
    node.incarnation = nodes.size();
    node.name = node.inventory.host = name;
    node.inventory.cores = 1;
    node.inventory.memory = std::int64_t{8} << 30;
    node.inventory.precision = "fp32";
    node.inventory.speed = actors::Speed{1e11, 1e11, 0};
  }
  return nodes;
}

/// Links all nodes by 10 Mbit/s with 50 ms.
void link_all(std::vector<actors::NodeHere>& nodes) {
  for (auto& node : nodes)
    for (const auto& other : nodes)
      if (other.name != node.name)
        actors::add_link(node.links, other.inventory.host, {0.05, 1.25e6}, {});
}

/// Returns the seconds of a step that waits for slow links if there are several devices.
double slow_on_many(int devices) { return devices > 1 ? 1.4 : 0.02; }

/// A run of which the test sets the times of steps.
class PlayedRun {
 public:
  explicit PlayedRun(const std::string& replan = "measured") : open_(open_run(replan)) {
    auto setup = apps::set_up(files_, open_.config);
    REQUIRE(setup);
    auto live = apps::plan_for(open_.config, *setup, nodes);
    REQUIRE(live);
    choice = live->choice;
    forecast = live->plan.step.count();
    place();
  }

  int devices() const {
    const auto stages = static_cast<int>(choice.stages.size()) - 1;
    return stages / choice.chunks * choice.replicas;
  }
  /// Loses a node, which comes back as another process.
  void lose(std::size_t node) {
    replanner_.node_went();
    nodes[node].incarnation += 100;
    replanner_.node_came();
    place();
  }
  /// Plays steps for some time, with a save every ten minutes.
  void play(std::chrono::nanoseconds time, const std::function<double(int devices)>& seconds) {
    const auto end = scheduler_.now() + time;
    auto saves = scheduler_.now() + 10min;
    while (scheduler_.now() < end) {
      // The steps vary by up to 4 %.
      const double took = seconds(devices()) * (1 + 0.01 * static_cast<double>(steps_ * 7 % 5));
      const auto next =
          scheduler_.now() + std::chrono::nanoseconds(static_cast<std::int64_t>(1e9 * took));
      scheduler_.run_until([] { return false; }, next);
      replanner_.stepped(++steps_, open_.config.train.steps, took, {});
      if (scheduler_.now() > saves) {
        replanner_.saved();
        saves += 10min;
      }
      if (std::exchange(asks_, false)) change_over();
    }
  }

  std::vector<actors::NodeHere> nodes = nodes_on_hosts({"alpha", "beta", "gamma"});
  apps::RunChoice choice;
  double forecast = 0;  // The step of the first plan, in seconds.
  int changes = 0;
  std::string told;  // The changes, for messages of tests.

 private:
  /// Each device has a node, as long as there are enough.
  std::vector<actors::NodeHere> used() const {
    auto used = nodes;
    used.resize(std::min(used.size(), static_cast<std::size_t>(devices())));
    return used;
  }
  void place() { replanner_.placed(choice, used()); }
  void change_over() {
    const auto next = replanner_.take();
    if (next) {
      choice = *next;
      ++changes;
      told += std::to_string(devices()) + " devices: " + choice.plan_why + "\n";
      place();
    }
    replanner_.over(next.has_value());
  }

  Scheduler scheduler_{{.seed = 1, .most_events = 100'000'000}};
  MachineConditions machine_;
  SimulatedEnv env_{scheduler_, scheduler_.add_process("head"), machine_};
  storage::MemoryFiles files_;
  config::Loaded open_;
  std::int64_t steps_ = 0;
  bool asks_ = false;
  apps::Replanner replanner_{
      env_, files_, 100ms,
      [this] {
        return std::optional(apps::Replanner::Standing{used(), nodes, choice, open_});
      },
      [this] { asks_ = true; }};
};

}  // namespace

TEST_CASE("a run over links that turn out slow goes to one node, and stays there", "[sim]") {
  PlayedRun run;
  REQUIRE(run.devices() > 1);
  run.play(3s, slow_on_many);
  link_all(run.nodes);  // As the traffic of the first steps has measured them.
  run.play(1min, slow_on_many);
  CHECK(run.devices() == 1);
  CHECK(run.changes == 1);
  CHECK(run.choice.plan_why.starts_with("expected time of a step: "));
  run.play(3h, slow_on_many);
  CHECK(run.devices() == 1);
  CHECK(run.changes == 1);
}

TEST_CASE("a run that cannot know why it is slow tries few plans, and comes back", "[sim]") {
  PlayedRun run;
  run.play(10min, slow_on_many);
  INFO(run.told);
  CHECK(run.devices() == 1);
  CHECK(run.choice.plan_why.starts_with("a step of the plan before took 1.4"));
  // Four plans are tried in an hour, and the run leaves each for a better one.
  CHECK(run.changes <= 2 * 4);
  run.changes = 0;
  run.play(50min, slow_on_many);
  CHECK(run.devices() == 1);
  CHECK(run.changes == 0);
}

TEST_CASE("a run whose attempts end soon leaves a slow plan all the same", "[sim]") {
  PlayedRun run;
  REQUIRE(run.devices() > 1);
  for (int attempt = 0; attempt < 20 && run.devices() > 1; ++attempt) {
    run.play(7s, slow_on_many);
    run.lose(0);
  }
  CHECK(run.devices() == 1);
}

TEST_CASE("a run over links that are known to be slow begins on one node", "[sim]") {
  auto nodes = nodes_on_hosts({"alpha", "beta", "gamma"});
  link_all(nodes);
  storage::MemoryFiles files;
  const auto open = open_run("measured");
  auto setup = apps::set_up(files, open.config);
  REQUIRE(setup);
  const auto live = apps::plan_for(open.config, *setup, nodes);
  REQUIRE(live);
  CHECK(live->plan.devices() == 1);
  CHECK(live->choice.plan_why.find("; others: ") != std::string::npos);
}

TEST_CASE("a plan on live nodes takes the measured times of units", "[sim]") {
  storage::MemoryFiles files;
  const auto open = open_run("measured");
  auto setup = apps::set_up(files, open.config);
  REQUIRE(setup);
  // Half a core of a nominal device.
  auto nodes = nodes_on_hosts({"alpha"});
  nodes[0].inventory.speed = actors::Speed{5e10, 5e10, 0};
  const auto live =
      apps::plan_for(open.config, *setup, nodes, 1, [](const apps::MeasuredModel& measured) {
        CHECK(measured.expected > 0);
        return std::vector<apps::UnitTimes>(measured.costs.size(), {.forward = 0.010,
                                                                    .backward = 0.020,
                                                                    .backward_input = 0.012,
                                                                    .backward_weight = 0.009,
                                                                    .update = 0.001});
      });
  REQUIRE(live);
  REQUIRE(live->plan.stages.size() == 1);
  // Eight micro-batches in four units, and an update.
  const double step = 2 * (8 * 4 * 0.030 + 4 * 0.001);
  CHECK(live->plan.step.count() > step);
  CHECK(live->plan.step.count() < step + 0.002);
  CHECK(setup->times.size() == 4);
}

TEST_CASE("noise in the measured times of units moves no cut", "[sim]") {
  storage::MemoryFiles files;
  const auto open = open_run("measured");
  const auto nodes = nodes_on_hosts({"alpha", "beta", "gamma"});
  const auto plan_by = [&](std::vector<apps::UnitTimes> (*measure)(const apps::MeasuredModel&)) {
    auto setup = apps::set_up(files, open.config);
    REQUIRE(setup);
    const auto live = apps::plan_for(open.config, *setup, nodes, 1, measure);
    REQUIRE(live);
    return live->choice.plan_name();
  };
  static constexpr apps::UnitTimes usual{0.010, 0.020, 0.012, 0.009, 0.001};
  static constexpr apps::UnitTimes shorter{0.005, 0.010, 0.006, 0.004, 0.001};
  static constexpr apps::UnitTimes longer{0.015, 0.030, 0.018, 0.014, 0.001};
  CHECK(plan_by([](const apps::MeasuredModel&) {
          return std::vector{longer, longer, shorter, shorter};
        }) == plan_by([](const apps::MeasuredModel&) { return std::vector(4, usual); }));
}

TEST_CASE("a run whose steps take what was expected keeps its plan", "[sim]") {
  PlayedRun run;
  const auto before = run.choice.plan_name();
  run.play(1h, [&](int) { return run.forecast * 1.1; });
  CHECK(run.choice.plan_name() == before);
  CHECK(run.changes == 0);
}

TEST_CASE("a run on a machine whose load varies changes its plan rarely", "[sim]") {
  PlayedRun run;
  // Every ten minutes another number of devices is the best.
  int tens = 0;
  for (; tens < 12; ++tens)
    run.play(10min, [&](int devices) { return 0.1 * (1 + 0.5 * ((devices + tens) % 3)); });
  INFO(run.changes);
  // Eight changes an hour may be hasty. The others wait for two saves.
  CHECK(run.changes <= 2 * (8 + 3));
}

TEST_CASE("a run that is planned again for nodes alone ignores its steps", "[sim]") {
  PlayedRun run("nodes");
  REQUIRE(run.devices() > 1);
  run.play(1h, slow_on_many);
  CHECK(run.devices() > 1);
  CHECK(run.changes == 0);
}
