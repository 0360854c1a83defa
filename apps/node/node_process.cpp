// `troupe node-process`: the process that a daemon or `troupe train --nodes` starts.

#include "apps/node/node_process.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <utility>

#include "actors/caf_shim.h"
#include "actors/nodes/node.h"
#include "actors/pace.h"
#include "apps/command.h"
#include "apps/gpu/gpu_watch.h"
#include "apps/gpu/nccl_links.h"
#include "apps/machine/apply_fault.h"
#include "apps/machine/exit_now.h"
#include "apps/machine/signals.h"
#include "apps/real/real_context.h"
#include "apps/run/process_run.h"
#include "apps/run/run_setup.h"
#include "config/load.h"
#include "transport/control/conversation.h"

namespace troupe::apps {
namespace {

using Say = std::function<void(const std::string&)>;

constexpr const char* life_variable = "TROUPE_LIFE";

/// Returns the secret of this life; 0 if no daemon started this process.
std::int64_t own_life() {
  const char* text = std::getenv(life_variable);
  const std::int64_t life = text ? std::strtoll(text, nullptr, 10) : 0;
  unsetenv(life_variable);
  return std::max<std::int64_t>(0, life);
}

/// A run's devices in this process, with the objects that they depend on.
class Home final : public actors::RunHome {
 public:
  static Result<std::shared_ptr<actors::RunHome>> open(const ProgramContext& program,
                                                       const Value& config,
                                                       const actors::Placement& placement, int here,
                                                       const NodeArguments& arguments, int cores,
                                                       const actors::Pace& pace, const Say& say) {
    auto loaded = config::load_message(config, "prepare");
    if (!loaded) return loaded.error();
    auto home = std::make_shared<Home>();
    home->loaded_ = std::move(*loaded);
    auto setup = set_up(program.files, home->loaded_.config);
    if (!setup) return setup.error();
    auto run = ProcessRun::make(
        home->loaded_, std::move(*setup), program.files, {.memory = MemoryOf::elsewhere},
        {.executors = program.executors,
         .are_here =
             [&](int device) {
               const auto index = static_cast<std::size_t>(device);
               return index < placement.stages.size() && placement.stages[index] == here;
             },
         .cores = cores,
         .pace = &pace,
         .want_links = placement.head() > 1,
         .first_gpu = arguments.first_gpu});
    if (!run) return run.error();
    home->run_ = std::move(*run);
    if (const auto& why = home->run_->why_not_linked(); !why.empty())
      say("tensors between GPUs are copied through the host's memory if no direct link exists: " +
          why);
    home->run_->device_notes().pass_on_to(say);
    return std::shared_ptr<actors::RunHome>(std::move(home));
  }
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

ExitCode node_process(const NodeArguments& arguments, const CommonFlags& flags) {
  RealContext real;
  const ProgramContext program = real.get();
  const int cores = arguments.cores > 0 ? arguments.cores : program.host.cores;
  const auto system = program.systems.make();
  EventFd bell;
  actors::Pace pace;
  constexpr int unknown = -1;
  std::atomic<int> code = unknown;
  const auto end = [&](ExitCode with) {
    code = static_cast<int>(with);
    bell.ring();
  };
  const auto say = [quiet = flags.quiet](const std::string& text) {
    if (!quiet) std::fprintf(stderr, "%s\n", text.c_str());
  };
  actors::NodeOptions options;
  options.name = arguments.name;
  options.inventory = inventory(program.host, cores, arguments.precision);
  options.term = arguments.term;
  options.term_proof = arguments.term_proof;
  options.life = own_life();
  auto dial = arguments.keys.dial(arguments.head);
  if (!dial) return complain(ExitCode::usage, "error: " + dial.error().text);
  options.dial = std::move(*dial);
  if (!arguments.interface.empty()) options.interface = arguments.interface;
  link_by_interface(options.interface);
  if (arguments.carrier == "tcp") options.carriers = actors::Carriers::tcp;
  options.open_run = [program, &arguments, cores, &pace, say](
                         const Value& config, const actors::Placement& placement, int here) {
    return Home::open(program, config, placement, here, arguments, cores, pace, say);
  };
  options.stuck = [](const std::string& why) {
    std::string text = "node process stopped: " + why + "\n";
    const auto tell = [text] { std::fputs(text.c_str(), stderr); };
    exit_now(ExitCode::failed, tell, [text] { return text; });
  };
  options.apply_fault = [&pace](const actors::Chaos& chaos) { apply_fault(chaos, pace); };
  options.say = say;
  options.rejected = [&](const std::string& why) {
    end(complain(ExitCode::no_head, "error: the head rejected this node: " + why));
  };
  options.retired = [&](const std::string& why) {
    say("node process stopped: " + why);
    end(ExitCode::done);
  };
  options.dismissed = [&](const std::string& why) {
    say("node stopped: " + why);
    end(ExitCode::dismissed);
  };
  auto started = actors::Node::start({program.env, program.network, *system, program.executors},
                                     std::move(options));
  if (!started) return complain(ExitCode::failed, "error: " + started.error().text);
  GpuWatchOptions watching;
  watching.tell = [&](const auto& gpus) { (*started)->tell({gpus}); };
  watching.say = [&](const std::string& why) {
    say("cannot read the state of this machine's GPUs: " + why);
  };
  const GpuWatch gpus(std::move(watching));
  ring_on_signals(bell);
  bell.wait();
  if (code == unknown) {
    (*started)->leave("stopped on request");
    while (code == unknown) bell.wait();
  }
  return static_cast<ExitCode>(code.load());
}

}  // namespace

void NodeArguments::add_to(CLI::App& command) {
  command.add_option("--head", head, "address of the head");
  command.add_option("--name", name, "name of the node (default: the host's name)");
  command.add_option("--cores", cores, "number of cores to use (default: all)");
  command.add_option(
      "--interface", interface,
      "address at which other nodes reach this machine (default: that of the route to the head)");
  keys.add_to(command);
  command
      .add_option("--precision", precision,
                  "fastest precision to offer if the configuration says auto (default: what the "
                  "processor has)")
      ->check(CLI::IsMember({"fp32", "bf16-pairs", "bf16-blocks"}));
  command
      .add_option("--carrier", carrier,
                  "transport: auto (GPU to GPU, and shared memory within a machine) or tcp")
      ->check(CLI::IsMember({"auto", "tcp"}));
}

std::vector<std::string> NodeArguments::words() const {
  std::vector<std::string> words{"node-process",
                                 "--head",
                                 head,
                                 "--cores",
                                 std::to_string(cores),
                                 "--carrier",
                                 carrier,
                                 "--term",
                                 std::to_string(term),
                                 "--first-gpu",
                                 std::to_string(first_gpu)};
  const std::pair<std::string, std::string> said[] = {
      {"--name", name},           {"--interface", interface}, {"--term-proof", term_proof},
      {"--precision", precision}, {"--keys", keys.keys},      {"--head-key", keys.head_key}};
  for (const auto& [option, value] : said)
    if (!value.empty()) words.insert(words.end(), {option, value});
  return words;
}

std::int64_t new_life(Env& env) {
  return static_cast<std::int64_t>(transport::new_incarnation(env) >> 2 | 1);
}

std::vector<std::string> environment_of(std::int64_t life) {
  return {std::string(life_variable) + "=" + std::to_string(life)};
}

actors::ExitNotice notice_of(std::int64_t life, const ProcessEnd& end) {
  if (end.signal == 0 && end.code == static_cast<int>(ExitCode::dismissed))
    return {life, "was stopped permanently", "", 0};
  const bool ended_well = end.signal == 0 && end.code == 0;
  return {life, to_text(end), ended_well ? "" : end.last_words, end.signal};
}

void add_node_process(Program& program) {
  auto [command, arguments] =
      add_command(program, program.app, "node-process",
                  "the process that `troupe node` starts and supervises", node_process);
  command->group("");  // Hidden from the help: not meant for people.
  arguments.add_to(*command);
  command->add_option("--term", arguments.term);
  command->add_option("--term-proof", arguments.term_proof);
  command->add_option("--first-gpu", arguments.first_gpu);
}

}  // namespace troupe::apps
