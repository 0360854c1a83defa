#include <cstdio>

#include "apps/command.h"
#include "apps/commands/usage.h"
#include "apps/gpu/gpus.h"
#include "apps/run/version.h"
#include "core/descriptor_limit.h"

namespace troupe::apps {

ExitCode complain(ExitCode code, const std::string& text) {
  std::fputs(text.c_str(), stderr);
  if (!text.ends_with('\n')) std::fputc('\n', stderr);
  return code;
}
ExitCode invalid(const Error& error) { return complain(ExitCode::invalid, "error: " + error.text); }

CLI::App& add_group(Program& program, const std::string& name, const std::string& help) {
  CLI::App* group = program.app.add_subcommand(name, help);
  group->require_subcommand(1);
  group->fallthrough();
  return *group;
}

namespace {

int run(int count, char** words) {
  CLI::App app{"Trains a neural network over machines that may vanish.", "troupe"};
  app.require_subcommand(1);
  app.set_version_flag("--version", version_text);
  CommonFlags flags;
  app.add_option("--output", flags.output, "auto, plain or json")
      ->check(CLI::IsMember({"auto", "plain", "json"}));
  app.add_flag("-q,--quiet", flags.quiet, "say only what went wrong");
  app.add_flag("-v,--verbose", flags.verbose, "say more");
  app.add_flag("--no-color", flags.no_color, "no colours, whatever the terminal")
      ->envname("NO_COLOR");

  ExitCode exit_code = ExitCode::done;
  Program program{app, flags, exit_code};
  for (const auto add : all_commands) add(program);
  app.add_subcommand("version", "print the version, the commit, and what it was built with")
      ->callback([] { std::puts(version_text().c_str()); });
  try {
    app.parse(count, words);
  } catch (const CLI::ParseError& error) {
    // CLI11 throws --help and --version as errors with exit code 0.
    if (error.get_exit_code() != 0)
      return static_cast<int>(complain(ExitCode::usage, describe(app, error)));
    app.exit(error);
    return static_cast<int>(ExitCode::done);
  }
  return static_cast<int>(exit_code);
}

}  // namespace
}  // namespace troupe::apps

int main(int count, char** words) {
  troupe::apps::prepare_for_gpus();  // First, while no other thread can read the environment.
  troupe::raise_descriptor_limit();
  return troupe::apps::run(count, words);
}
