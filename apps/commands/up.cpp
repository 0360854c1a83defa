// `troupe up` and `troupe down`: start and end nodes on many machines over ssh.

#include <algorithm>
#include <cstdio>
#include <map>

#include "apps/client/head_address.h"
#include "apps/client/head_client.h"
#include "apps/client/wire_keys.h"
#include "apps/command.h"
#include "apps/commands/remote_arguments.h"
#include "apps/hosts/children.h"
#include "apps/hosts/hostfile.h"
#include "apps/hosts/node_scripts.h"
#include "apps/hosts/ssh.h"
#include "apps/hosts/up_state.h"
#include "core/printable.h"

namespace troupe::apps {
namespace {

struct UpArguments {
  std::string hostfile;
  std::string head;
  DialKeys keys;
  std::string node_keys;
  RemoteArguments remote;
  int patience = 30;
  bool print = false;
};

struct DownArguments {
  int patience = 30;
  bool print = false;
  std::vector<std::string> forget;
};

/// The end of a script on a machine.
struct ScriptEnd {
  int code = 0;
  bool is_untouched = false;  // Nothing of the script can have run.
};

/// Pairs of a machine and its script.
using Scripts = std::vector<std::pair<std::string, std::string>>;

/// Runs all scripts at once. Prints each line after its machine's name, and how each script has
/// ended.
std::map<std::string, ScriptEnd> run_scripts(const Scripts& scripts, int patience,
                                             const RemotePlace& place, const CommonFlags& flags) {
  std::map<std::string, ScriptEnd> ends;
  std::map<std::string, std::string> said;
  Children children;
  for (const auto& [host, script] : scripts)
    children.start({.words = over_ssh(host),
                    .input = script,
                    .patience = std::chrono::seconds(patience),
                    .on_line =
                        [&, host = host](ChildOrder::Stream stream, const std::string& line) {
                          const bool is_error = stream == ChildOrder::Stream::error;
                          if (is_error) said[host] += line + "\n";
                          if (is_error || !flags.quiet)
                            std::fprintf(is_error ? stderr : stdout, "%s: %s\n", host.c_str(),
                                         printable(line).c_str());
                        },
                    .on_end =
                        [&, host = host](int code) {
                          ends[host] = {code, is_untouched(host, code, said[host])};
                          if (code == 0) return;
                          const Check reached = judge_reached(host, code, said[host], place);
                          std::fprintf(stderr, "%s: error: %s%s\n", host.c_str(),
                                       reached.found.c_str(),
                                       reached.fix.empty() ? "" : ("; " + reached.fix).c_str());
                        }});
  children.wait();
  return ends;
}

ExitCode print_scripts(const Scripts& scripts) {
  for (const auto& [host, script] : scripts)
    std::printf("%s <<'SCRIPT'\n%sSCRIPT\n", shell_line(over_ssh(host)).c_str(), script.c_str());
  return ExitCode::done;
}

ExitCode tell_failures(const std::map<std::string, ScriptEnd>& ends, const std::string& what) {
  const auto failed =
      std::ranges::count_if(ends, [](const auto& one) { return one.second.code != 0; });
  if (failed == 0) return ExitCode::done;
  return complain(ExitCode::failed, "error: " + std::to_string(failed) + " of " +
                                        std::to_string(ends.size()) + " machines " + what);
}

ExitCode up(const UpArguments& arguments, const CommonFlags& flags) {
  const auto hosts = read_hostfile(arguments.hostfile);
  if (!hosts) return complain(ExitCode::invalid, hosts.error().text);
  const auto head = find_head(arguments.head);
  if (!head) return complain(ExitCode::usage, "error: " + head.error().text);
  if (arguments.node_keys.empty() != arguments.keys.head_key.empty())
    return complain(ExitCode::usage,
                    "error: --node-keys (identity of the nodes) and --head-key (identity of the "
                    "head) need each other; give both");
  auto place = RemotePlace::like_here(arguments.remote.program, arguments.remote.folder);
  if (!place) return complain(ExitCode::invalid, place.error().text);
  const auto path = up_state_path();
  if (!path) return complain(ExitCode::failed, "error: " + path.error().text);

  const auto before = read_up(*path);
  if (!before) return complain(ExitCode::failed, "error: " + before.error().text);
  if (*before && (*before)->head != *head)
    return complain(ExitCode::usage, "error: nodes were started already on " +
                                         std::to_string((*before)->hosts.size()) +
                                         " machines, for " + (*before)->head + " (" + *path +
                                         "); stop them first: troupe down");
  // Existing nodes of the same head stay, and missing ones are added.
  UpState state = *before ? **before : new_up(*head);
  const NodesOrder order{state.name,
                         *head,
                         arguments.node_keys,
                         arguments.keys.head_key,
                         *place,
                         std::chrono::seconds(arguments.patience)};
  Scripts scripts;
  for (const auto& host : *hosts) scripts.emplace_back(host.name, script_that_starts(host, order));
  if (arguments.print) return print_scripts(scripts);

  // Dials the head first, so that a missing head is one error instead of one for each machine.
  const auto dial = arguments.keys.dial(*head);
  if (!dial) return complain(ExitCode::usage, "error: " + dial.error().text);
  if (const auto client = HeadClient::dial(*dial, wait_on_stderr(*head)); !client)
    return complain(ExitCode::no_head, "error: " + client.error().text);
  // Recorded before anything runs, so that `troupe down` can end everything.
  const auto known = state.hosts;
  for (const auto& host : *hosts) state.add(host.name);
  if (auto written = write_up(*path, state); !written)
    return complain(ExitCode::failed, "error: " + written.error().text);
  constexpr int to_connect = 30;
  int most_slots = 1;
  for (const auto& host : *hosts) most_slots = std::max(most_slots, host.slots);
  const auto ends =
      run_scripts(scripts, most_slots * arguments.patience + to_connect, *place, flags);
  for (const auto& [host, end] : ends)
    if (end.is_untouched && std::ranges::find(known, host) == known.end()) state.remove(host);
  if (auto written = write_up(*path, state); !written)
    return complain(ExitCode::failed, "error: " + written.error().text);
  return tell_failures(ends,
                       "do not have all their nodes; the other nodes run until `troupe down`; run "
                       "`troupe up` again to add the missing ones");
}

/// Removes machines from the list without ending anything.
ExitCode forget(const DownArguments& arguments, UpState state, const std::string& path) {
  for (const auto& host : arguments.forget)
    if (!state.remove(host)) {
      std::string there;
      for (const auto& one : state.hosts) there += (there.empty() ? "" : ", ") + one;
      return complain(ExitCode::usage, "error: --forget " + host + ": found on the list: " +
                                           (there.empty() ? "nothing" : there) +
                                           "; give one of these names");
    }
  if (auto written = write_up(path, state); !written)
    return complain(ExitCode::failed, "error: " + written.error().text);
  return ExitCode::done;
}

ExitCode down(const DownArguments& arguments, const CommonFlags& flags) {
  const auto path = up_state_path();
  if (!path) return complain(ExitCode::failed, "error: " + path.error().text);
  auto state = read_up(*path);
  if (!state) return complain(ExitCode::failed, "error: " + state.error().text);
  if (!*state) {
    if (!flags.quiet) std::puts("no nodes are running");
    return ExitCode::done;
  }
  if (!arguments.forget.empty()) return forget(arguments, std::move(**state), *path);
  Scripts scripts;
  for (const auto& host : (*state)->hosts)
    scripts.emplace_back(
        host, script_that_ends((*state)->name, std::chrono::seconds(arguments.patience)));
  if (arguments.print) return print_scripts(scripts);
  constexpr int to_connect = 60;
  const auto ends = run_scripts(scripts, arguments.patience + to_connect, {}, flags);
  // Keeps the machines that could not be reached, for the next attempt.
  std::erase_if((*state)->hosts, [&](const auto& host) { return ends.at(host).code == 0; });
  if (auto written = write_up(*path, **state); !written)
    return complain(ExitCode::failed, "error: " + written.error().text);
  return tell_failures(ends,
                       "may still have nodes; run `troupe down` again, or `troupe down --forget "
                       "HOST` for a machine that is gone");
}

}  // namespace

void add_up(Program& program) {
  {
    auto [command, arguments] = add_command(
        program, program.app, "up", "start nodes on the machines of a hostfile over ssh", up);
    command
        ->add_option("hostfile", arguments.hostfile,
                     "hostfile: one machine per line, such as alpha slots=2")
        ->required();
    command->add_option("--head", arguments.head,
                        "address at which the machines reach the head (default: TROUPE_HEAD, or "
                        "the head last started here)");
    arguments.keys.add_to(*command);
    command->add_option(
        "--node-keys", arguments.node_keys,
        "path of the key file on each machine; {host} stands for the machine's name");
    arguments.remote.add_to(*command);
    command
        ->add_option("--patience", arguments.patience,
                     "timeout in seconds for a node to join (default: 30)")
        ->check(CLI::Range(1, 3600));
    command->add_flag("--print", arguments.print, "print the commands without running them");
  }
  {
    auto [command, arguments] =
        add_command(program, program.app, "down", "stop the nodes that `troupe up` started", down);
    command
        ->add_option("--patience", arguments.patience,
                     "timeout in seconds for a node to stop (default: 30)")
        ->check(CLI::Range(1, 3600));
    command->add_option("--forget", arguments.forget,
                        "remove a machine that is permanently gone from the list; stop nothing");
    command->add_flag("--print", arguments.print, "print the commands without running them");
  }
}

}  // namespace troupe::apps
