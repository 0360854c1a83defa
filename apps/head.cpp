#include <csignal>
#include <cstdio>

#include "apps/bell.h"
#include "apps/command.h"
#include "apps/head_address.h"
#include "apps/head_service.h"
#include "apps/signals.h"

namespace troupe::apps {
namespace {

struct HeadArguments {
  std::string listen = "127.0.0.1:" + std::to_string(usual_head_port);
  std::string events = "127.0.0.1:" + std::to_string(usual_head_port + 1);
  std::string interface = "127.0.0.1";
  std::string keys;
  std::string allow;
  bool allow_chaos = false;
};

ExitCode head(const HeadArguments& arguments, const CommonFlags& flags) {
  const auto say = [quiet = flags.quiet](const std::string& text) {
    if (!quiet) std::fprintf(stderr, "%s\n", text.c_str());
  };
  HeadOptions options;
  options.listen = to_endpoint(arguments.listen);
  options.events = to_endpoint(arguments.events);
  options.interface = arguments.interface;
  options.say = say;
  if (arguments.allow_chaos) options.drills = HeadOptions::Drills::allowed;
  std::string join = "troupe node";
  if (arguments.keys.empty() != arguments.allow.empty())
    return complain(ExitCode::usage,
                    "error: --keys and --allow go together: who this head is, and who may come");
  if (!arguments.keys.empty()) {
    auto keys = transport::read_key_pair(arguments.keys);
    if (!keys) return complain(ExitCode::usage, "error: " + keys.error().text);
    auto allowed = transport::AllowList::read(arguments.allow);
    if (!allowed) return complain(ExitCode::invalid, allowed.error().text);
    join += " --keys HOST.key --head-key '" + keys->public_key + "'";
    options.keys = std::move(*keys);
    options.allowed = std::move(*allowed);
  }
  auto opened = HeadService::open(std::move(options));
  if (!opened) return complain(ExitCode::failed, "error: " + opened.error().text);
  const auto& service = **opened;
  remember_head(service.endpoint());
  say("troupe " TROUPE_VERSION " leads at " + service.endpoint() + "; events at " +
      service.events());
  say("on each machine:  " + join + " --head " + service.endpoint());
  say("then:             troupe submit CONFIG --wait");
  Bell bell;
  ring_on_signals(bell);
  bell.wait();
  say("stopping: runs finish their step and are saved; once more to stop at once");
  return ExitCode::done;
}

}  // namespace

void add_head(Program& program) {
  auto [command, arguments] =
      add_command(program, program.app, "head", "lead runs, and know the nodes", head);
  command->add_option("--listen", arguments.listen,
                      "where nodes and people dial; port 0 takes a free one");
  command->add_option("--events", arguments.events, "where events are published");
  command->add_option("--keys", arguments.keys, "a file of `troupe keys new`: who this head is");
  command->add_option("--allow", arguments.allow, "a list of hosts: who may come, and as what");
  command->add_flag("--allow-chaos", arguments.allow_chaos,
                    "let `troupe chaos` kill, stop and slow down nodes here: for drills");
  command->add_option("--interface", arguments.interface,
                      "the address by which nodes reach this machine");
}

}  // namespace troupe::apps
