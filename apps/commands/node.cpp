// `troupe node`: the daemon of a host.

#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>

#include "apps/client/head_address.h"
#include "apps/command.h"
#include "apps/hosts/interfaces.h"
#include "apps/machine/print_stacks.h"
#include "apps/machine/service_manager.h"
#include "apps/machine/signals.h"
#include "apps/node/node_daemon.h"
#include "apps/real/real_processes.h"
#include "core/threads/event_fd.h"
#include "core/threads/real_env.h"
#include "transport/real_network.h"

namespace troupe::apps {
namespace {

struct DaemonArguments {
  NodeArguments node;
  double leave_patience = 30;  // Seconds.
  int exit_code_on_signal = 0;
};

ExitCode node(const DaemonArguments& given, const CommonFlags& flags) {
  auto arguments = given.node;
  const auto manager = ServiceManager::from_environment();
  if (!manager) return complain(ExitCode::usage, "error: " + manager.error().text);
  const auto head = find_head(arguments.head);
  if (!head) return complain(ExitCode::usage, "error: " + head.error().text);
  arguments.head = *head;
  const auto dial = arguments.keys.dial(*head);
  if (!dial) return complain(ExitCode::usage, "error: " + dial.error().text);
  if (arguments.interface.empty()) {
    auto towards = address_towards(*head);
    if (!towards) return complain(ExitCode::no_head, "error: " + towards.error().text);
    arguments.interface = std::move(*towards);
  }
  manager->status("waits for the head at " + *head);
  EventFd bell;
  std::atomic<int> code = 0;
  NodeDaemonOptions options;
  options.arguments = std::move(arguments);
  options.dial = *dial;
  options.leave_patience = std::chrono::milliseconds(static_cast<int>(1000 * given.leave_patience));
  options.quiet = flags.quiet;
  options.say = [quiet = flags.quiet](const std::string& text) {
    if (!quiet) std::fprintf(stderr, "%s\n", text.c_str());
  };
  options.status = [&](const std::string& text) { manager->status(text); };
  options.ended = [&](int with) {
    code = with;
    bell.ring();
  };
  RealEnv env;
  print_stacks_on_quit();
  transport::RealNetwork network;
  RealProcesses processes;
  const auto daemon = NodeDaemon::start({env, network, processes}, std::move(options));
  if (!daemon) return complain(ExitCode::usage, "error: " + daemon.error().text);
  ring_on_signals(bell);
  // Ready even without a head, since a head that starts later finds this node waiting.
  manager->ready();
  manager->wait(bell, [] {});
  manager->stopping();
  const int result = signal_came() ? given.exit_code_on_signal : code.load();
  EventFd ended;
  (*daemon)->end([&ended] { ended.ring(); });
  ended.wait();
  return static_cast<ExitCode>(result);
}

}  // namespace

void add_node(Program& program) {
  auto [command, arguments] =
      add_command(program, program.app, "node", "offer this machine's devices to a head", node);
  arguments.node.add_to(*command);
  command->add_option("--leave-patience", arguments.leave_patience,
                      "seconds to wait for a save when stopping (default: 30)");
  command
      ->add_option("--exit-code-on-signal", arguments.exit_code_on_signal,
                   "exit code after SIGTERM or SIGINT (default: 0); Kubernetes replaces a pod that "
                   "exits with another code than 0")
      ->check(CLI::Range(0, 255));
}

}  // namespace troupe::apps
