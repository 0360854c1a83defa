// `troupe node-process`: the process that a daemon or `troupe train --nodes` starts.

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "actors/nodes/node_pool.h"
#include "apps/command.h"
#include "apps/gpu/gpu_watch.h"
#include "apps/gpu/nccl_links.h"
#include "apps/machine/apply_fault.h"
#include "apps/machine/exit_now.h"
#include "apps/machine/load_watch.h"
#include "apps/machine/print_stacks.h"
#include "apps/machine/signals.h"
#include "apps/machine/this_machine.h"
#include "apps/node/node_arguments.h"
#include "apps/node/node_program.h"
#include "apps/real/real_context.h"

namespace troupe::apps {
namespace {

/// Returns the secret of this life; 0 if no daemon started this process.
std::int64_t own_life() {
  const char* text = std::getenv(life_variable);
  const std::int64_t life = text ? std::strtoll(text, nullptr, 10) : 0;
  unsetenv(life_variable);
  return std::max<std::int64_t>(0, life);
}

/// Measures the processor. It is done once, before the node joins.
actors::Speed speed_of(const NodeArguments& arguments, const HostFacts& host) {
  const int cores = arguments.cores > 0 ? arguments.cores : host.cores;
  const auto best =
      actors::precision_named(arguments.precision.empty() ? host.precision : arguments.precision);
  actors::Speed speed;
  speed.plain = measure_products(cores, kernels::Precision::fp32);
  speed.best = best == kernels::Precision::fp32 ? speed.plain : measure_products(cores, best);
  return speed;
}

ExitCode node_process(const NodeArguments& arguments, const CommonFlags& flags) {
  print_stacks_on_quit();
  EventFd bell;
  constexpr int unknown = -1;
  std::atomic<int> code = unknown;
  const auto say = [quiet = flags.quiet](const std::string& text) {
    if (!quiet) std::fprintf(stderr, "%s\n", text.c_str());
  };
  NodeProgramOptions options;
  options.arguments = arguments;
  options.life = own_life();
  auto dial = arguments.keys.dial(arguments.head);
  if (!dial) return complain(ExitCode::usage, "error: " + dial.error().text);
  options.dial = std::move(*dial);
  link_by_interface(
      arguments.interface.empty() ? actors::NodeOptions().interface : arguments.interface);
  options.say = say;
  options.apply_fault = apply_fault;
  options.stuck = [](const std::string& why) {
    std::string text = "node process stopped: " + why + "\n";
    const auto tell = [text] { std::fputs(text.c_str(), stderr); };
    exit_now(ExitCode::failed, tell, [text] { return text; });
  };
  options.ended = [&](ExitCode with, const std::string& error) {
    if (!error.empty()) complain(with, error);
    code = static_cast<int>(with);
    bell.ring();
  };
  RealContext real;
  options.speed = speed_of(arguments, real.get().host);
  options.slowness = measure_slowness;
  auto started = NodeProgram::start(real.get(), std::move(options));
  if (!started) return complain(ExitCode::failed, "error: " + started.error().text);
  GpuWatchOptions watching;
  watching.tell = [&](const auto& gpus) { (*started)->tell({gpus}); };
  watching.say = [&](const std::string& why) {
    say("cannot read the state of this machine's GPUs: " + why);
  };
  const GpuWatch gpus(std::move(watching));
  const LoadWatch load([&](const auto& told) { (*started)->tell(told); });
  ring_on_signals(bell);
  bell.wait();
  if (code == unknown) {
    (*started)->leave("stopped on request");
    while (code == unknown) bell.wait();
  }
  return static_cast<ExitCode>(code.load());
}

}  // namespace

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
