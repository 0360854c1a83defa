#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "apps/client/head_address.h"
#include "apps/command.h"
#include "apps/head/head_service.h"
#include "apps/hosts/interfaces.h"
#include "apps/machine/keeper.h"
#include "apps/machine/kept_process.h"
#include "apps/machine/notify_arguments.h"
#include "apps/machine/print_stacks.h"
#include "apps/machine/service_manager.h"
#include "apps/machine/signals.h"
#include "apps/page/metrics_page.h"
#include "apps/page/status_page.h"
#include "apps/real/read_host.h"
#include "apps/real/real_context.h"
#include "apps/real/real_processes.h"
#include "apps/telemetry/otlp_arguments.h"
#include "core/threads/event_fd.h"
#include "core/threads/real_env.h"
#include "transport/channels/socket.h"

namespace troupe::apps {
namespace {

// The age from which a head counts as having led.
constexpr auto least_life = std::chrono::seconds(2);

struct HeadArguments {
  std::string listen = "127.0.0.1:" + std::to_string(usual_head_port);
  std::string events = "127.0.0.1:" + std::to_string(usual_head_port + 1);
  std::string http = "127.0.0.1:" + std::to_string(usual_head_port + 2);
  std::string interface;
  std::string keys;
  std::string allow;
  std::vector<std::string> paths;  // Folders that runs may use besides the working folder.
  bool allow_chaos = false;
  bool plain_tensors = false;
  MetricsOptions metrics;
  NotifyArguments notify;
  OtlpArguments otlp;
  std::string state = ".troupe";
  bool supervised = false;
  bool only_submitted = false;
};

/// Returns this process' arguments. A supervised head gets all of them, so no option can be lost.
std::vector<std::string> own_arguments() {
  auto arguments = read_host().command;
  if (!arguments.empty()) arguments.erase(arguments.begin());  // The program's name.
  return arguments;
}

/// Fails if tensors would leave this machine unencrypted although nobody asked for that. Without
/// --interface they use the head's listening address, which is remote only if keys are used.
Status check_tensors(const HeadArguments& arguments, const std::string& interface) {
  if (arguments.interface.empty()) return Done{};
  const auto address = transport::tcp_address(interface + ":0");
  if (!address) return within("--interface", address.error());
  if (transport::is_loopback(*address) || arguments.plain_tensors || !arguments.keys.empty())
    return Done{};
  return Error{
      "--interface " + interface +
      ": tensors would leave this machine unencrypted, because this head has no keys; give it "
      "--keys and --allow (`troupe keys new`), or --plain-tensors if the network is private"};
}

/// Returns whether to restart a head that ended like this. A head is not restarted if it was asked
/// to end, was started with bad arguments or knows a newer head. Nor is one that failed as it
/// began, since it would fail again.
bool comes_back(const ProcessEnd& end, std::chrono::steady_clock::duration lived) {
  if (end.signal != 0) return true;
  switch (static_cast<ExitCode>(end.code)) {
    case ExitCode::done:
    case ExitCode::usage:
    case ExitCode::invalid:
    case ExitCode::deposed:
    case ExitCode::interrupted:
      return false;
    default:
      return lived >= least_life;
  }
}

/// Runs the head as a child process and restarts it when it fails.
ExitCode supervise(const CommonFlags& flags) {
  EventFd bell;
  std::atomic<int> code = 0;
  KeepOptions options;
  auto began = std::chrono::steady_clock::now();  // Used only by the keeper's loop.
  options.arguments = [&] {
    began = std::chrono::steady_clock::now();
    return own_arguments();
  };
  options.end_patience =
      std::chrono::hours(1);  // Long, since runs finish their step and are saved.
  options.ended = [&](const ProcessEnd& end) {
    code = end.code;
    const bool again = comes_back(end, std::chrono::steady_clock::now() - began);
    if (!again) bell.ring();
    if (again && !flags.quiet)
      std::fprintf(stderr, "the head (process %d) %s; restarting it\n",
                   static_cast<int>(end.process), to_text(end).c_str());
    return again;
  };
  print_stacks_on_quit();
  RealEnv env;
  RealProcesses processes;
  KeptProcess process(env, processes, std::move(options));
  ring_on_signals(bell);
  bell.wait();
  EventFd ended;
  process.end([&ended] { ended.ring(); });
  ended.wait();
  return static_cast<ExitCode>(code.load());
}

/// Rereads the list of hosts whenever its file has changed, until it is destroyed.
class AllowListWatch {
 public:
  AllowListWatch(Env& env, std::string path, HeadService& service,
                 std::function<void(const std::string&)> say)
      : path_(std::move(path)),
        service_(service),
        say_(std::move(say)),
        seen_(stamp()),
        loop_(env.make_loop({"allow list"})) {
    watch();
  }

 private:
  /// The identity of the file's content; it differs if the file has changed.
  using Stamp = std::tuple<ino_t, off_t, time_t, long>;
  Stamp stamp() const {
    struct stat facts {};
    if (::stat(path_.c_str(), &facts) != 0) return {};
    return {facts.st_ino, facts.st_size, facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec};
  }

  void watch() {
    loop_->after(look_every, [this] {
      look();
      watch();
    });
  }

  void look() {
    const auto now = stamp();
    if (now == seen_) return;
    seen_ = now;
    // If the list cannot be read, the previous one stays in force.
    const auto list = transport::AllowList::read(path_);
    // The queue is full: try again at the next look.
    if (list && !service_.allow(*list)) seen_ = {};
    say_(list ? path_ + " has changed: " + std::to_string(list->size()) + " keys may come"
              : "the allow list is unchanged: " + list.error().text);
  }

  static constexpr auto look_every = std::chrono::milliseconds(1000);

  const std::string path_;
  HeadService& service_;
  const std::function<void(const std::string&)> say_;
  Stamp seen_;
  std::unique_ptr<Loop> loop_;  // Declared last: its tasks use the other members.
};

/// Opens the status page. Returns null on failure, since a head works without a page.
std::unique_ptr<StatusPage> open_page(const std::string& address, storage::Files& files,
                                      const HeadService& service,
                                      const std::function<void(const std::string&)>& say) {
  auto page = StatusPage::listen(
      address, files, [&service] { return service.status(); },
      [&service] { return service.numbers(); });
  if (!page) {
    say("no status page: " + page.error().text);
    return nullptr;
  }
  say("its page:         " + (*page)->address());
  return std::move(*page);
}

/// Serves the metrics to other machines. Returns null on failure, since a head works without them.
std::unique_ptr<MetricsPage> open_metrics(MetricsAccess access, const HeadService& service,
                                          const std::function<void(const std::string&)>& say) {
  const bool asks = access.token.has_value();
  auto page = MetricsPage::listen(
      std::move(access), [&service] { return service.status(); },
      [&service] { return service.numbers(); });
  if (!page) {
    say("no metrics: " + page.error().text);
    return nullptr;
  }
  say("its metrics:      " + (*page)->address() +
      (asks ? " for whoever has the token" : " for everybody who can reach it"));
  return std::move(*page);
}

ExitCode head(const HeadArguments& arguments, const CommonFlags& flags) {
  // The supervised head has the same arguments, and leads.
  if (arguments.supervised && keeper_of_this_process() == 0) return supervise(flags);
  const auto manager = ServiceManager::from_environment();
  if (!manager) return complain(ExitCode::usage, "error: " + manager.error().text);
  RealContext real;
  const ProgramContext program = real.get();
  const auto say = [quiet = flags.quiet](const std::string& text) {
    if (!quiet) std::fprintf(stderr, "%s\n", text.c_str());
  };
  HeadOptions options;
  options.listen = to_endpoint(arguments.listen);
  options.events = to_endpoint(arguments.events);
  options.interface =
      arguments.interface.empty() ? address_of_listener(options.listen) : arguments.interface;
  const std::string interface = options.interface;
  if (auto safe = check_tensors(arguments, interface); !safe)
    return complain(ExitCode::usage, "error: " + safe.error().text);
  std::optional<MetricsAccess> metrics;
  if (!arguments.metrics.address.empty()) {
    auto access = metrics_access(arguments.metrics);
    if (!access) return complain(ExitCode::usage, "error: " + access.error().text);
    metrics = std::move(*access);
  }
  const auto notifier = open_notifier(arguments.notify, say);
  if (!notifier) return complain(ExitCode::usage, "error: " + notifier.error().text);
  const auto otlp = open_otlp(arguments.otlp, program.host.host, say);
  if (!otlp) return complain(ExitCode::usage, "error: " + otlp.error().text);
  options.notify = [&notifier = *notifier, &otlp = *otlp](const Value& event) {
    if (notifier) notifier->tell(event);
    if (otlp) otlp->tell(event);
  };
  if (arguments.plain_tensors) options.plain = actors::PlainTensors::anywhere;
  options.state = arguments.state;
  options.say = say;
  if (arguments.allow_chaos) options.drills = HeadOptions::Drills::allowed;
  if (arguments.only_submitted) options.earlier_runs = HeadOptions::EarlierRuns::wait;
  options.deposed = [&env = program.env](std::uint64_t term) {
    // Ends at once, since whatever it wrote now would be wrong.
    env.end_process(
        static_cast<int>(ExitCode::deposed),
        "error: a node has proved that it knows a newer head (term " + std::to_string(term) +
            "); start this head with the state folder of the newer one (--state), or restart the "
            "nodes\n");
  };
  std::string join = "troupe node";
  if (arguments.keys.empty() != arguments.allow.empty())
    return complain(ExitCode::usage,
                    "error: --keys (the identity of this head) and --allow (who may connect) need "
                    "each other; give both");
  if (!arguments.paths.empty() && arguments.keys.empty())
    return complain(ExitCode::usage,
                    "error: --allow-path needs --keys: a head without keys only serves its own "
                    "user, who may use all files of that user");
  if (!arguments.keys.empty()) {
    auto confinement = Confinement::to(arguments.paths);
    if (!confinement) return complain(ExitCode::usage, "error: " + confinement.error().text);
    options.confinement = std::move(*confinement);
    auto keys = transport::read_key_pair(arguments.keys);
    if (!keys) return complain(ExitCode::usage, "error: " + keys.error().text);
    auto allowed = transport::AllowList::read(arguments.allow);
    if (!allowed) return complain(ExitCode::invalid, allowed.error().text);
    join += " --keys HOST.key --head-key '" + keys->public_key + "'";
    options.keys = std::move(*keys);
    options.allowed = std::move(*allowed);
  }
  if (options.keys) {
    options.seal = transport::TermSeal::of_key(options.keys->secret_key);
  } else if (const auto path = shared_secret_path(); !path.empty()) {
    auto seal = transport::TermSeal::of_file(path);
    if (seal)
      options.seal = *seal;
    else
      say("this head shares no secret with other heads and yields to none: " + seal.error().text);
  }
  print_stacks_on_quit();
  // Signals must work before clients can reach the head.
  EventFd bell;
  ring_on_signals(bell);
  auto opened = HeadService::open(program, std::move(options));
  if (!opened) return complain(ExitCode::failed, "error: " + opened.error().text);
  const auto& service = **opened;
  remember_head(service.endpoint(), arguments.state);
  say("troupe " TROUPE_VERSION " leads at " + service.endpoint() + "; events at " +
      service.events() + "; process " + std::to_string(program.host.process) + ", term " +
      std::to_string(service.term()));
  say("on each machine:  " + join + " --head " + reached_at(service.endpoint(), interface));
  say("then:             troupe submit CONFIG --wait");
  if (arguments.plain_tensors)
    say("tensors:          sent between machines unencrypted (--plain-tensors); anyone on the "
        "network can read and change them");
  std::optional<AllowListWatch> watch;
  if (!arguments.allow.empty()) watch.emplace(program.env, arguments.allow, **opened, say);
  const auto page =
      arguments.http == "off" ? nullptr : open_page(arguments.http, program.files, service, say);
  const auto metrics_page = metrics ? open_metrics(std::move(*metrics), service, say) : nullptr;
  manager->status("listens at " + service.endpoint());
  manager->ready();
  // The check takes every lock that an order takes, so it hangs if the head hangs.
  manager->wait(bell, [&service] { (void)service.status(); });
  manager->stopping();
  say("stopping: runs finish their step and save a checkpoint; they continue when this head "
      "restarts; interrupt again to stop at once");
  EventFd ended;
  (*opened)->end([&ended] { ended.ring(); });
  ended.wait();
  forget_head(arguments.state);
  return ExitCode::done;
}

}  // namespace

void add_head(Program& program) {
  auto [command, arguments] = add_command(program, program.app, "head",
                                          "start the coordinator: accept nodes and runs", head);
  command->add_option(
      "--listen", arguments.listen,
      "address for nodes and clients (default: 127.0.0.1:4700); port 0 picks a free port");
  command->add_option("--events", arguments.events,
                      "address at which events are published (default: 127.0.0.1:4701)");
  command->add_option("--http", arguments.http,
                      "local address of the status page and the Prometheus metrics (default: "
                      "127.0.0.1:4702); off disables them");
  auto* metrics = command->add_option("--metrics", arguments.metrics.address,
                                      "another address of /metrics and /healthz, for a Prometheus "
                                      "on another machine, such as 10.0.0.1:4703");
  command
      ->add_option("--metrics-token-file", arguments.metrics.token_file,
                   "file with the bearer token that the metrics at this address want")
      ->needs(metrics);
  command
      ->add_flag("--metrics-without-token", arguments.metrics.without_token,
                 "let everybody who reaches this address read the metrics, for a private network")
      ->needs(metrics);
  arguments.notify.add_to(*command);
  arguments.otlp.add_to(*command);
  command->add_option("--keys", arguments.keys, "key file of this head, from `troupe keys new`");
  command->add_option("--allow", arguments.allow, "allow list of public keys and their roles");
  command->add_option("--allow-path", arguments.paths,
                      "with --keys: another folder that runs may read and write, besides the "
                      "working folder; can be repeated");
  command->add_flag("--allow-chaos", arguments.allow_chaos,
                    "allow `troupe chaos` to inject faults into nodes and runs");
  command->add_option("--interface", arguments.interface,
                      "address at which nodes reach this machine (default: the listening address)");
  command->add_flag(
      "--plain-tensors", arguments.plain_tensors,
      "send tensors between machines unencrypted, for a private network (default: encrypted)");
  command->add_option(
      "--state", arguments.state,
      "state folder (default: .troupe); restart the head with the same one to continue its runs");
  command->add_flag(
      "--only-submitted", arguments.only_submitted,
      "do not continue runs of an earlier head process until they are submitted again");
  command->add_flag("--supervised", arguments.supervised,
                    "restart the head if it dies, as systemd would");
}

}  // namespace troupe::apps
