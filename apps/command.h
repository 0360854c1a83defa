#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "apps/console.h"

namespace troupe::apps {

/// The program and its commands. The command that runs leaves its exit code in `exit_code`.
struct Program {
  CLI::App& app;
  const CommonFlags& flags;
  ExitCode& exit_code;
};

/// Runs the program with these words, and returns its exit code. The main function calls it.
int run_program(int count, char** words);

/// A command that is being added: its options are bound to `arguments`.
template <class Arguments>
struct NewCommand {
  CLI::App* app;
  Arguments& arguments;
};

/// Adds a command to `parent`. `run` is called after the command line was parsed.
template <class Arguments>
NewCommand<Arguments> add_command(Program& program, CLI::App& parent, const std::string& name,
                                  const std::string& help,
                                  ExitCode (*run)(const Arguments&, const CommonFlags&)) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = parent.add_subcommand(name, help);
  command->fallthrough();
  command->callback([&exit_code = program.exit_code, &flags = program.flags, arguments, run] {
    exit_code = run(*arguments, flags);
  });
  return {command, *arguments};
}

/// Adds a command that only groups subcommands, such as "checkpoint" of "checkpoint ls".
CLI::App& add_group(Program& program, const std::string& name, const std::string& help);

/// Each function adds the commands of one file in commands/.
void add_ask_head(Program& program);
void add_audit(Program& program);
void add_bench(Program& program);
void add_checkpoint(Program& program);
void add_completion(Program& program);
void add_config(Program& program);
void add_data(Program& program);
void add_doctor(Program& program);
void add_eval(Program& program);
void add_follow(Program& program);
void add_help(Program& program);
void add_head(Program& program);
void add_init(Program& program);
void add_keys(Program& program);
void add_man(Program& program);
void add_model(Program& program);
void add_node(Program& program);
void add_node_process(Program& program);
void add_plan(Program& program);
void add_play(Program& program);
void add_render(Program& program);
void add_report(Program& program);
void add_rm(Program& program);
void add_sample(Program& program);
void add_schedule(Program& program);
void add_top(Program& program);
void add_trace(Program& program);
void add_sim(Program& program);
void add_train(Program& program);
void add_up(Program& program);
void add_verify(Program& program);

/// Lists the runs below runs/ in the working folder, the newest first.
ExitCode list_local_runs(const CommonFlags& flags);

/// All of these functions, in the order of the help.
inline constexpr void (*all_commands[])(Program& program) = {
    add_init,     add_train,  add_verify, add_head,       add_node,     add_node_process,
    add_ask_head, add_follow, add_top,    add_play,       add_keys,     add_audit,
    add_doctor,   add_up,     add_render, add_report,     add_trace,    add_eval,
    add_sample,   add_bench,  add_plan,   add_sim,        add_schedule, add_checkpoint,
    add_data,     add_config, add_model,  add_completion, add_man,      add_help,
    add_rm,
};

}  // namespace troupe::apps
