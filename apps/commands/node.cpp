// `troupe node`: the daemon of a host. It starts the node process, watches it, reports its end to
// the head, restarts it, and ends it when the daemon ends.

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>

#include "apps/client/head_address.h"
#include "apps/command.h"
#include "apps/hosts/interfaces.h"
#include "apps/machine/service_manager.h"
#include "apps/machine/signals.h"
#include "apps/node/node_process.h"
#include "apps/real/real_processes.h"
#include "core/threads/real_env.h"
#include "transport/control/conversation.h"
#include "transport/real_network.h"

namespace troupe::apps {
namespace {

struct DaemonArguments {
  NodeArguments node;
  double leave_patience = 30;  // Seconds.
  int exit_code_on_signal = 0;
};

/// The daemon's own connection to the head. A report that cannot be sent now is dropped, since a
/// restarted head discovers the present nodes itself.
class Line {
 public:
  Line(Env& env, transport::Network& network)
      : incarnation_(transport::new_incarnation(env)),
        network_(network),
        loop_(env.make_loop({"daemon"})) {}

  Status dial(const transport::DialOptions& options, const ServiceManager& manager) {
    transport::ClientEvents heard;
    heard.connected = [this, &manager, endpoint = options.endpoint] {
      manager.status("connected to the head at " + endpoint);
      transport::Message hello;
      hello.type = transport::MessageName("hello").text();
      hello.incarnation = incarnation_;
      (void)client_->send(hello);
    };
    heard.gone = [&manager, endpoint = options.endpoint](transport::Gone, const std::string& why) {
      manager.status("waits for the head at " + endpoint + ": " + why);
    };
    heard.message = [this](const transport::Message& message) {
      const auto* proof = message.body.find("term_proof");
      if (!proof || !proof->text()) return;  // The message is not an answer to the hello.
      const std::lock_guard lock(mutex_);
      if (message.term < term_) return;
      term_ = message.term;
      term_proof_ = *proof->text();
    };
    auto client = network_.dial(options, std::move(heard), *loop_);
    if (!client) return client.error();
    client_ = std::move(*client);
    client_->start();
    return Done{};
  }
  void tell(const actors::ExitNotice& notice) {
    (void)client_->send(transport::to_message(notice));
  }
  /// Returns the newest term and its proof.
  std::pair<std::uint64_t, std::string> term() const {
    const std::lock_guard lock(mutex_);
    return {term_, term_proof_};
  }

 private:
  const std::uint64_t incarnation_;
  mutable std::mutex mutex_;
  std::uint64_t term_ = 0;
  std::string term_proof_;
  transport::Network& network_;
  std::unique_ptr<Loop> loop_;                        // Outlives the client.
  std::unique_ptr<transport::ControlClient> client_;  // Its callbacks are tasks of the loop.
};

/// Returns whether another process in its place could succeed.
bool is_worth_another(const ProcessEnd& end) {
  if (end.signal != 0) return true;
  const auto code = static_cast<ExitCode>(end.code);
  return code != ExitCode::usage && code != ExitCode::no_head && code != ExitCode::dismissed;
}

bool is_dismissed(const ProcessEnd& end) {
  return end.signal == 0 && static_cast<ExitCode>(end.code) == ExitCode::dismissed;
}

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
  RealEnv env;
  transport::RealNetwork network;
  Line line(env, network);
  if (auto dialed = line.dial(*dial, *manager); !dialed)
    return complain(ExitCode::usage, "error: " + dialed.error().text);

  EventFd bell;
  std::atomic<int> code = 0;
  std::atomic<bool> leaves = false;
  std::int64_t life = 0;  // The secret of the present process; used only by the keeper's loop.
  KeepOptions options;
  options.arguments = [&] {
    std::tie(arguments.term, arguments.term_proof) = line.term();
    life = new_life(env);
    auto words = arguments.words();
    if (flags.quiet) words.emplace_back("-q");
    return words;
  };
  options.environment = [&] { return environment_of(life); };
  options.end_patience = std::chrono::milliseconds(static_cast<int>(1000 * given.leave_patience));
  options.ended = [&](const ProcessEnd& end) {
    line.tell(notice_of(life, end));
    const bool again = is_worth_another(end);
    if (!flags.quiet && (end.signal != 0 || end.code != 0) && !is_dismissed(end))
      std::fprintf(stderr, "node process %d %s%s\n", static_cast<int>(end.process),
                   to_text(end).c_str(), again && !leaves ? "; another one is started" : "");
    if (!again) {
      code = is_dismissed(end) ? 0 : end.code;
      bell.ring();
    }
    return again;
  };
  RealProcesses processes;
  KeptProcess process(env, processes, std::move(options));
  ring_on_signals(bell);
  // Ready even without a head, since a head that starts later finds this node waiting.
  manager->ready();
  manager->wait(bell, [] {});
  manager->stopping();
  leaves = true;
  const int result = signal_came() ? given.exit_code_on_signal : code.load();
  EventFd ended;
  process.end([&ended] { ended.ring(); });
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
