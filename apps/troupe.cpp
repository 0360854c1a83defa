#include <algorithm>
#include <cstdio>
#include <string_view>

#include "apps/command.h"
#include "apps/commands/usage.h"
#include "apps/events/terminal_width.h"
#include "apps/gpu/gpus.h"
#include "apps/run/version.h"
#include "core/descriptor_limit.h"
#include "core/text.h"
#include "kernels/instructions.h"

namespace troupe::apps {

ExitCode complain(ExitCode code, const std::string& text) {
  // Below the first line may be a line of a file, with a mark under its place.
  const auto end = std::min(text.find('\n'), text.size());
  const auto form = form_of(stderr);
  std::fputs(
      (wrapped(std::string_view(text).substr(0, end), form.columns) + text.substr(end)).c_str(),
      stderr);
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

int run_program(int count, char** words) {
  prepare_for_gpus();  // First, while no other thread can read the environment.
  raise_descriptor_limit();
  if (const auto obeyed = kernels::obey_instructions_variable(); !obeyed)
    return static_cast<int>(invalid(obeyed.error()));
  CLI::App app{"Trains neural networks on machines that may fail.", "troupe"};
  app.require_subcommand(1);
  app.set_version_flag("--version", version_text);
  CommonFlags flags;
  app.add_option("--output", flags.output, "output format: auto, plain or json (default: auto)")
      ->check(CLI::IsMember({"auto", "plain", "json"}));
  app.add_flag("-q,--quiet", flags.quiet, "print errors only");

  ExitCode exit_code = ExitCode::done;
  Program program{app, flags, exit_code};
  for (const auto add : all_commands) add(program);
  app.add_subcommand("version", "print the version, the commit and the build options")
      ->callback([] { std::puts(version_text().c_str()); });
  arrange_help(app);
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

}  // namespace troupe::apps
