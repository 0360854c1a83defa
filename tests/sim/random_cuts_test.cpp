// Random plans of T5 that really run: no device takes more memory than its plan says, and all of
// them give the weights of one stage.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "actors/executors.h"
#include "apps/events/event.h"
#include "apps/run/prepared_plan.h"
#include "apps/run/run_session.h"
#include "apps/run/run_setup.h"
#include "catch.h"
#include "config/load.h"
#include "core/json.h"
#include "core/threads/event_fd.h"
#include "core/threads/real_env.h"
#include "storage/files/memory_files.h"

using namespace troupe;

namespace {

/// Opens real executors, and remembers them.
class KnownExecutors final : public actors::Executors {
 public:
  std::unique_ptr<actors::Executor> open(const actors::OnCores& order) override {
    auto opened = real_.open(order);
    all_.push_back(opened.get());
    return opened;
  }
  std::unique_ptr<actors::Executor> open(actors::OnDevice order) override {
    return real_.open(std::move(order));
  }
  /// Returns the most bytes that an executor's memory ever had. The executor must live.
  std::int64_t most_held(int number) const {
    return static_cast<std::int64_t>(
        all_[static_cast<std::size_t>(number)]->memory().counters().peak_in_use);
  }

 private:
  actors::RealExecutors real_;
  std::vector<actors::Executor*> all_;
};

Value t5_run() {
  auto tree = parse_json(R"({
    "name": "cuts", "seed": 3,
    "model": {"kind": "t5", "vocab": 256, "source": 48, "target": 32, "width": 48, "layers": 3,
              "decoder_layers": 4, "heads": 3, "head_width": 16, "ffn": 96, "dropout": 0.1},
    "data": {"train": "/data/pairs.jsonl"},
    "batch": {"global": 16, "micro": 4},
    "optimizer": {"kind": "adamw", "lr": 0.01},
    "precision": {"compute": "fp32"},
    "train": {"steps": 2, "threads": 1}})");
  REQUIRE(tree);
  return *tree;
}

void write_pairs(storage::Files& files) {
  std::string lines;
  for (int i = 0; i < 40; ++i)
    lines += R"({"source": "line )" + std::to_string(i * 37) + R"( of a text", "target": "enil )" +
             std::to_string(i) + "\"}\n";
  REQUIRE(files.make_directory("/data"));
  REQUIRE(storage::write_new_file(files, "/data/pairs.jsonl", {std::as_bytes(std::span(lines))}));
}

struct DeviceBytes {
  std::int64_t planned = 0, held = 0;
};

struct Run {
  std::string weights;
  std::vector<DeviceBytes> devices;
};

Run trained(const Value& pipeline) {
  Value tree = t5_run();
  tree.set("pipeline", pipeline);
  RealEnv env;
  EventFd bell;
  storage::MemoryFiles files;
  write_pairs(files);
  KnownExecutors executors;
  apps::HostFacts host;
  host.host = "real";
  auto loaded = config::load_message(tree, "test");
  INFO((loaded ? "" : loaded.error().text));
  REQUIRE(loaded);
  auto setup = apps::set_up(files, loaded->config);
  INFO((setup ? "" : setup.error().text));
  REQUIRE(setup);
  const apps::PlanFor whom{.memory = apps::MemoryOf::elsewhere};
  const auto prepared = apps::prepare_plan(loaded->config, *setup, whom);
  INFO((prepared ? "" : prepared.error().text));
  REQUIRE(prepared);
  const auto plan = (*prepared)->plan;

  apps::RunSession session({env, host, files, files}, std::move(*loaded), apps::RunStart::anew,
                           [](const std::string&) {});
  actors::caf_shim::RealSystem system(1);
  REQUIRE(session.plan(std::move(*setup), whom, {.executors = executors}));
  REQUIRE(session.enter());
  Run run;
  std::mutex mutex;
  const auto outcome = session.play_here(
      bell, system,
      [&](const Value& event) {
        const std::lock_guard lock(mutex);
        if (text_in(event, "type") == "checkpoint.saved") run.weights = text_in(event, "weights");
      },
      nullptr, [] {});
  INFO(outcome.why);
  REQUIRE(outcome.how == actors::Outcome::How::done);
  const int positions = static_cast<int>(plan.replicas.front().places.size());
  for (int device = 0; device < plan.devices(); ++device)
    run.devices.push_back({plan.memory_at(device % positions), executors.most_held(device)});
  return run;
}

/// Draws the [pipeline] of a plan with random cuts.
Value drawn_pipeline(std::mt19937_64& random, int units) {
  const auto below = [&](int end) {
    return std::uniform_int_distribution<int>(0, end - 1)(random);
  };
  std::vector<int> cuts;
  for (int unit = 1; unit < units; ++unit)
    if (below(2) == 0) cuts.push_back(unit);
  Value::List boundaries{Value(0)};
  for (const int cut : cuts) boundaries.emplace_back(cut);
  boundaries.emplace_back(units);
  Value::List recompute;
  for (std::size_t stage = 0; stage + 1 < boundaries.size(); ++stage)
    recompute.emplace_back(below(3) == 0);
  Value pipeline;
  pipeline.set("stages", std::move(boundaries));
  pipeline.set("recompute", std::move(recompute));
  pipeline.set("schedule", std::vector<const char*>{"1f1b", "gpipe",
                                                    "zb-h1"}[static_cast<std::size_t>(below(3))]);
  pipeline.set("replicas", 1 + below(2));
  return pipeline;
}

/// Kernels take and free less than this within a loop, which no plan counts.
constexpr std::int64_t scratch = 1 << 17;

void check_plans(int plans) {
  constexpr int units = 7;
  Value one;
  one.set("stages", 1);
  const auto weights = trained(one).weights;
  REQUIRE(weights.size() > 1);
  std::mt19937_64 random(7);
  double fullest = 0;
  for (int i = 0; i < plans; ++i) {
    const Value pipeline = drawn_pipeline(random, units);
    CAPTURE(i, to_json(pipeline));
    const Run run = trained(pipeline);
    CHECK(run.weights == weights);
    for (const auto& [planned, held] : run.devices) {
      CAPTURE(planned, held);
      CHECK(held <= planned + scratch);
      fullest = std::max(fullest, static_cast<double>(held) / static_cast<double>(planned));
    }
  }
  CHECK(fullest > 0.9);  // A plan that says much too much would pass, too.
}

}  // namespace

TEST_CASE("no device of T5 takes more memory than its plan says, wherever it is cut", "[sim]") {
  check_plans(12);
}

TEST_CASE("no device of T5 takes more memory than its plan says over 1,000 random plans",
          "[.all]") {
  check_plans(1000);
}
