#include "apps/node/node_program.h"

#include <utility>

#include "apps/run/process_run.h"
#include "apps/run/run_setup.h"
#include "config/load.h"

namespace troupe::apps {
namespace {

/// A run's devices in this process, with the objects that they depend on.
class Home final : public actors::RunHome {
 public:
  static Result<std::shared_ptr<Home>> open(storage::Files& files, const Value& config,
                                            const DevicesHere& here) {
    auto loaded = config::load_message(config, "prepare");
    if (!loaded) return loaded.error();
    auto home = std::make_shared<Home>();
    home->loaded_ = std::move(*loaded);
    auto setup = set_up(files, home->loaded_.config);
    if (!setup) return setup.error();
    auto run = ProcessRun::make(home->loaded_, std::move(*setup), files,
                                {.memory = MemoryOf::elsewhere}, here);
    if (!run) return run.error();
    home->run_ = std::move(*run);
    return home;
  }

  const ProcessRun& run() const { return *run_; }
  actors::RunSpecPtr spec() override { return run_->spec(); }
  std::vector<actors::LinkedDevice*> linked() override { return run_->linked(); }
  std::chrono::nanoseconds head_patience() const override {
    return loaded_.config.limits.head_patience;
  }
  void finish(std::function<void()> then) override { run_->finish(std::move(then)); }

 private:
  config::Loaded loaded_;
  std::unique_ptr<ProcessRun> run_;
};

/// Returns what the process offers to a head.
actors::Inventory inventory(const HostFacts& host, int cores, const std::string& precision) {
  return {.host = host.host,
          .pid = host.process,
          .version = TROUPE_VERSION,
          .cores = cores,
          .numa_nodes = host.numa_nodes,
          .memory = host.memory,
          .precision = precision.empty() ? host.precision : precision,
          .networks = host.networks,
          .kept = {}};
}

}  // namespace

NodeProgram::NodeProgram(const ProgramContext& program, NodeProgramOptions options)
    : program_(program),
      options_(std::move(options)),
      cores_(options_.arguments.cores > 0 ? options_.arguments.cores : program.host.cores),
      system_(program.systems.make()) {}

NodeProgram::~NodeProgram() = default;

Result<std::unique_ptr<NodeProgram>> NodeProgram::start(const ProgramContext& program,
                                                        NodeProgramOptions options) {
  std::unique_ptr<NodeProgram> node(new NodeProgram(program, std::move(options)));
  auto started = actors::Node::start(
      {program.env, program.network, *node->system_, program.executors}, node->node_options());
  if (!started) return started.error();
  node->node_ = std::move(*started);
  return node;
}

actors::NodeOptions NodeProgram::node_options() {
  const auto& arguments = options_.arguments;
  actors::NodeOptions options;
  options.name = arguments.name;
  options.inventory = inventory(program_.host, cores_, arguments.precision);
  options.inventory.speed = options_.speed;
  options.term = arguments.term;
  options.term_proof = arguments.term_proof;
  options.life = options_.life;
  options.dial = options_.dial;
  if (!arguments.interface.empty()) options.interface = arguments.interface;
  if (arguments.carrier == "tcp") options.carriers = actors::Carriers::tcp;
  options.open_run = [this](const Value& config, const actors::Placement& placement, int here) {
    return open_run(config, placement, here);
  };
  options.stuck = options_.stuck;
  options.apply_fault = [this](const actors::Chaos& chaos) { options_.apply_fault(chaos, pace_); };
  options.thread_stacks = program_.host.thread_stacks;
  options.say = options_.say;
  options.rejected = [this](const std::string& why) {
    options_.ended(ExitCode::no_head, "error: the head rejected this node: " + why);
  };
  options.retired = [this](const std::string& why) {
    options_.say("node process stopped: " + why);
    options_.ended(ExitCode::done, "");
  };
  options.dismissed = [this](const std::string& why) {
    options_.say("node stopped: " + why);
    options_.ended(ExitCode::dismissed, "");
  };
  return options;
}

Result<std::shared_ptr<actors::RunHome>> NodeProgram::open_run(const Value& config,
                                                               const actors::Placement& placement,
                                                               int here) {
  auto home =
      Home::open(program_.files, config,
                 {.executors = program_.executors,
                  .are_here =
                      [&](int device) {
                        const auto index = static_cast<std::size_t>(device);
                        return index < placement.stages.size() && placement.stages[index] == here;
                      },
                  .cores = cores_,
                  .pace = &pace_,
                  .want_links = placement.head() > 1,
                  .slowness = options_.slowness,
                  .first_gpu = options_.arguments.first_gpu});
  if (!home) return home.error();
  if (const auto& why = (*home)->run().why_not_linked(); !why.empty())
    options_.say(
        "tensors between GPUs are copied through the host's memory if no direct link exists: " +
        why);
  (*home)->run().device_notes().pass_on_to(options_.say);
  return std::shared_ptr<actors::RunHome>(std::move(*home));
}

}  // namespace troupe::apps
