#include "actors/node.h"

#include <unistd.h>

#include <cstdio>
#include <thread>

#include "apps/command.h"
#include "apps/head_address.h"
#include "apps/process_run.h"
#include "apps/run_setup.h"
#include "apps/signals.h"
#include "apps/suffer.h"
#include "apps/wire_keys.h"
#include "config/load.h"
#include "kernels/linear.h"

namespace troupe::apps {
namespace {

struct NodeArguments {
  std::string head;
  std::string name;
  int cores = 0;
  std::string interface = "127.0.0.1";
  std::string carrier = "auto";
  DialKeys keys;
};

/// A run's devices in this process, with all that they stand on.
class Home final : public actors::RunHome {
 public:
  static Result<std::shared_ptr<actors::RunHome>> open(const Value& config,
                                                       const actors::Placement& placement, int here,
                                                       int cores, const actors::Pace& pace) {
    auto loaded = config::load_message(config, "prepare");
    if (!loaded) return loaded.error();
    auto home = std::make_shared<Home>();
    home->loaded_ = std::move(*loaded);
    auto setup = set_up(home->loaded_.config);
    if (!setup) return setup.error();
    storage::Files& files = *setup->files;
    auto run = ProcessRun::make(
        home->loaded_, std::move(*setup), files,
        {.are_here =
             [&](int device) {
               const auto index = static_cast<std::size_t>(device);
               return index < placement.stages.size() && placement.stages[index] == here;
             },
         .cores = home->loaded_.config.train.threads ? std::optional<int>() : std::optional(cores),
         .pace = &pace});
    if (!run) return run.error();
    home->run_ = std::move(*run);
    return std::shared_ptr<actors::RunHome>(std::move(home));
  }
  actors::RunSpecPtr spec() override { return run_->spec(); }

 private:
  config::Loaded loaded_;
  std::unique_ptr<ProcessRun> run_;
};

actors::Inventory inventory(int cores) {
  char host[256] = "node";
  (void)gethostname(host, sizeof host - 1);
  const auto pages = sysconf(_SC_PHYS_PAGES);
  return {.host = host,
          .pid = getpid(),
          .version = TROUPE_VERSION,
          .cores = cores,
          .memory = pages * sysconf(_SC_PAGESIZE),
          .bf16 = kernels::has_bf16_products()};
}

ExitCode node(const NodeArguments& arguments, const CommonFlags& flags) {
  const auto head = find_head(arguments.head);
  if (!head) return complain(ExitCode::usage, "error: " + head.error().text);
  const int machine = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const int cores = arguments.cores > 0 ? arguments.cores : machine;
  Bell bell;
  actors::Pace pace;
  std::string rejected;
  const auto say = [quiet = flags.quiet](const std::string& text) {
    if (!quiet) std::fprintf(stderr, "%s\n", text.c_str());
  };
  actors::NodeOptions options;
  options.name = arguments.name;
  options.inventory = inventory(cores);
  auto dial = arguments.keys.dial(*head);
  if (!dial) return complain(ExitCode::usage, "error: " + dial.error().text);
  options.dial = std::move(*dial);
  options.interface = arguments.interface;
  if (arguments.carrier == "tcp") options.carriers = actors::Carriers::tcp;
  options.open_run = [&](const Value& config, const actors::Placement& placement, int here) {
    return Home::open(config, placement, here, cores, pace);
  };
  options.suffer = [&](const actors::Chaos& chaos) { suffer(chaos, pace); };
  options.say = say;
  options.rejected = [&](const std::string& why) {
    rejected = why;
    bell.ring();
  };
  auto started = actors::Node::start(std::move(options));
  if (!started) return complain(ExitCode::failed, "error: " + started.error().text);
  ring_on_signals(bell);
  bell.wait();
  if (!rejected.empty())
    return complain(ExitCode::no_head, "error: the head rejects this node: " + rejected);
  return ExitCode::done;
}

}  // namespace

void add_node(Program& program) {
  auto [command, arguments] =
      add_command(program, program.app, "node", "lend this machine's devices to a head", node);
  command->add_option("--head", arguments.head, "where the head listens");
  command->add_option("--name", arguments.name, "what the head shall call it (the host's name)");
  command->add_option("--cores", arguments.cores, "how many cores it may use (all)");
  command->add_option("--interface", arguments.interface,
                      "the address by which other nodes reach this machine");
  arguments.keys.add_to(*command);
  command->add_option("--carrier", arguments.carrier, "auto: shared memory on one machine; or tcp")
      ->check(CLI::IsMember({"auto", "tcp"}));
}

}  // namespace troupe::apps
