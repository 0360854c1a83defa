#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "apps/client/event_reader.h"
#include "apps/client/which_head.h"
#include "apps/head/head_service.h"
#include "apps/node/node_daemon.h"
#include "apps/node/node_program.h"
#include "apps/processes.h"
#include "catch.h"
#include "config/toml/document.h"
#include "core/json.h"
#include "core/threads/event_fd.h"
#include "core/threads/real_env.h"
#include "storage/files/memory_files.h"
#include "transport/real_network.h"

namespace troupe::apps {
namespace {

constexpr auto patience = std::chrono::seconds(120);

/// A machine with a disk of its own, in this process.
struct Machine {
  Machine(Env& env, transport::Network& network, const std::string& name)
      : env(env), network(network) {
    host.host = name;
    host.process = 1;
    host.memory = std::int64_t{1} << 30;
    host.precision = "fp32";
  }
  ProgramContext context() { return {env, network, files, host, systems, executors}; }

  Env& env;
  transport::Network& network;
  storage::MemoryFiles files;
  HostFacts host;
  actors::caf_shim::RealSystems systems;
  actors::RealExecutors executors;
};

/// Node processes that are objects in this process.
class InThisProcess final : public Processes {
 public:
  explicit InThisProcess(Machine& machine) : machine_(machine) {}

  std::unique_ptr<ChildProcess> start(ProcessOrder order, Loop& loop, Ended ended) override;
  int started() const { return started_; }

 private:
  Machine& machine_;
  std::atomic<int> started_ = 0;
};

/// A node program. Only tasks of the loop use it, and the program's own loop tells them its end.
class Node final : public ChildProcess {
 public:
  Node(Loop& loop, Processes::Ended ended) : shared_(std::make_shared<Shared>(loop, ended)) {}
  ~Node() override {
    const std::lock_guard lock(shared_->mutex);
    shared_->is_dropped = true;
  }

  Status start(const ProgramContext& program, NodeProgramOptions options) {
    options.ended = [shared = shared_](ExitCode code, const std::string& error) {
      shared->tell({1, static_cast<int>(code), 0, error});
    };
    auto started = NodeProgram::start(program, std::move(options));
    if (!started) return started.error();
    program_ = std::move(*started);
    return Done{};
  }
  void signal(Signal signal) override {
    if (!program_) return;
    if (signal == Signal::end) return program_->leave("stopped on request");
    program_.reset();
    shared_->tell({1, 0, SIGKILL, ""});
  }

 private:
  struct Shared {
    Shared(Loop& loop, Processes::Ended ended) : loop(loop), ended(std::move(ended)) {}
    void tell(const ProcessEnd& end) {
      const std::lock_guard lock(mutex);
      if (is_dropped || std::exchange(has_ended, true)) return;
      loop.post([this, end] { ended(end); });
    }
    std::mutex mutex;
    bool is_dropped = false;
    bool has_ended = false;
    Loop& loop;
    Processes::Ended ended;
  };

  std::shared_ptr<Shared> shared_;
  std::unique_ptr<NodeProgram> program_;
};

/// Reads what NodeArguments::words() wrote.
NodeArguments arguments_of(std::vector<std::string> words) {
  NodeArguments arguments;
  CLI::App app;
  app.add_flag("-q");
  CLI::App* command = app.add_subcommand("node-process");
  command->fallthrough();
  arguments.add_to(*command);
  command->add_option("--term", arguments.term);
  command->add_option("--term-proof", arguments.term_proof);
  command->add_option("--first-gpu", arguments.first_gpu);
  std::reverse(words.begin(), words.end());
  app.parse(words);
  return arguments;
}

std::unique_ptr<ChildProcess> InThisProcess::start(ProcessOrder order, Loop& loop, Ended ended) {
  ++started_;
  NodeProgramOptions options;
  options.arguments = arguments_of(order.arguments);
  options.dial = *options.arguments.keys.dial(options.arguments.head);
  const auto& life = order.environment.at(0);
  options.life = std::stoll(life.substr(life.find('=') + 1));
  options.say = [](const std::string&) {};
  options.apply_fault = [](const actors::Chaos&, actors::Pace&) {};
  options.stuck = [env = &machine_.env](const std::string& why) { env->end_process(1, why); };
  auto node = std::make_unique<Node>(loop, std::move(ended));
  REQUIRE(node->start(machine_.context(), std::move(options)));
  return node;
}

/// A head and two daemons with a node each, all in this process.
class Programs {
 public:
  Programs() {
    HeadOptions options;
    options.state = "state";
    options.listen = options.events = "tcp://127.0.0.1:0";
    options.say = [](const std::string&) {};
    head = std::move(*HeadService::open(heads.context(), std::move(options)));
    client = std::move(*which().dial({.quiet = true}));
    events = std::move(*EventBell::open(*which().events_of(*client), bell));
    for (int i = 0; i < 2; ++i) {
      auto& machine = nodes[static_cast<std::size_t>(i)];
      NodeDaemonOptions of_daemon;
      of_daemon.arguments.head = head->endpoint();
      of_daemon.arguments.name = machine.host.host;
      of_daemon.arguments.interface = "127.0.0.1";
      of_daemon.arguments.carrier = "tcp";
      of_daemon.dial = *of_daemon.arguments.keys.dial(head->endpoint());
      of_daemon.say = of_daemon.status = [](const std::string&) {};
      of_daemon.ended = [](int) {};
      daemons.push_back(std::move(
          *NodeDaemon::start({env, network, processes[static_cast<std::size_t>(i)]}, of_daemon)));
    }
  }

  /// Submits a run of two stages on two nodes.
  void submit(int steps) {
    auto config = parse_json(R"({
      "name": "small", "seed": 3,
      "model": {"kind": "mlp", "dims": [8, 8, 8, 4]},
      "data": {"train": "made:gaussians?dims=8&classes=4"},
      "batch": {"global": 8, "micro": 2}, "optimizer": {"kind": "sgd", "lr": 0.1},
      "precision": {"compute": "fp32"}, "pipeline": {"stages": 2},
      "elastic": {"nodes": "2"}, "checkpoint": {"every": "20 steps"}})");
    REQUIRE(config);
    Value train;
    train.set("steps", steps);
    config->set("train", std::move(train));
    const auto answer = client->ask("run.submit", *config);
    INFO((answer ? std::string() : answer.refusal().text));
    REQUIRE(answer);
  }
  /// Waits until the run's report says so. Each event of the head asks again.
  template <class Says>
  bool wait_until(Says says) {
    const auto end = std::chrono::steady_clock::now() + patience;
    Value asked;
    asked.set("run", "small");
    while (std::chrono::steady_clock::now() < end) {
      const auto report = client->ask("run.get", asked);
      if (report && says(*report)) return true;
      bell.wait_for(std::chrono::milliseconds(500));
    }
    return false;
  }
  bool exists(const std::string& path) { return *heads.files.exists(path); }

  RealEnv env;
  transport::RealNetwork network;
  Machine heads{env, network, "alpha"};
  Machine nodes[2] = {{env, network, "beta"}, {env, network, "gamma"}};
  InThisProcess processes[2] = {InThisProcess(nodes[0]), InThisProcess(nodes[1])};
  EventFd bell;
  std::unique_ptr<HeadService> head;
  std::unique_ptr<HeadClient> client;
  std::unique_ptr<EventBell> events;
  std::vector<std::unique_ptr<NodeDaemon>> daemons;

 private:
  WhichHead which() const { return {.address = head->endpoint(), .keys = {}}; }
};

bool is_done(const Value& report) { return text_of(report, "state") == "done"; }
bool has_stepped(const Value& report) { return number_in(report, "step") >= 2; }

TEST_CASE("a head and nodes in one process train a run on disks in memory", "[programs]") {
  Programs programs;
  programs.submit(5);
  REQUIRE(programs.wait_until(is_done));
  CHECK(programs.exists("state/journal"));
  CHECK(programs.exists("runs/small/events.jsonl"));
  CHECK(programs.exists("runs/small/ledger"));
  CHECK(programs.exists("runs/small/about.json"));
  const auto about = parse_json(programs.heads.files.read("runs/small/about.json")->text());
  CHECK(text_of(about->find("lives")->list()->at(0), "host") == "alpha");
  CHECK_FALSE(std::filesystem::exists("runs"));
  CHECK_FALSE(std::filesystem::exists("state"));
  // Both nodes leave in order, and no other process takes their place.
  for (const auto& daemon : programs.daemons) {
    EventFd ended;
    daemon->end([&ended] { ended.ring(); });
    ended.wait();
  }
  CHECK(programs.processes[0].started() == 1);
  CHECK(programs.processes[1].started() == 1);
}

TEST_CASE("daemons, nodes and head can be destroyed while a run plays", "[programs]") {
  for (const bool head_first : {false, true}) {
    Programs programs;
    programs.submit(1'000'000);
    REQUIRE(programs.wait_until(has_stepped));
    if (head_first) programs.head.reset();
    programs.daemons.clear();
    programs.head.reset();
  }
}

}  // namespace
}  // namespace troupe::apps
