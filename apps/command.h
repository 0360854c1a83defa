#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "apps/console.h"

namespace troupe::apps {

/// The program with its commands. A command that was chosen leaves its exit code here.
struct Program {
  CLI::App& app;
  const CommonFlags& flags;
  ExitCode& exit_code;
};

/// A command on its way into the program: its options are bound to its arguments.
template <class Arguments>
struct NewCommand {
  CLI::App* app;
  Arguments& arguments;
};

/// Adds a command to `parent`, and what it does once the line was read.
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

/// A command that is only a name for others: "checkpoint ls".
CLI::App& add_group(Program& program, const std::string& name, const std::string& help);

/// One for each command; a file each.
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
void add_head(Program& program);
void add_keys(Program& program);
void add_man(Program& program);
void add_node(Program& program);
void add_node_process(Program& program);
void add_plan(Program& program);
void add_play(Program& program);
void add_render(Program& program);
void add_report(Program& program);
void add_sample(Program& program);
void add_schedule(Program& program);
void add_top(Program& program);
void add_trace(Program& program);
void add_sim(Program& program);
void add_train(Program& program);
void add_up(Program& program);
void add_verify(Program& program);

}  // namespace troupe::apps
