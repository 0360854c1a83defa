#include <algorithm>
#include <cctype>
#include <cstdio>
#include <sstream>
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

namespace {

/// Returns whether a line quotes a file: "   12 | key = value". Marks below it point at its
/// columns.
bool is_quoted(std::string_view line) {
  const auto digit = line.find_first_not_of(' ');
  if (digit == line.npos || !std::isdigit(static_cast<unsigned char>(line[digit]))) return false;
  return line.substr(line.find_first_not_of("0123456789", digit)).starts_with(" |");
}

/// Fits the lines of an error into a terminal.
std::string fitted(std::string_view text, std::size_t columns) {
  std::string out;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto line = text.substr(0, end);
    if (is_quoted(line))
      out += line;
    else
      out += line.starts_with(' ') ? wrapped_in_columns(line, columns) : wrapped(line, columns);
    out += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace

ExitCode complain(ExitCode code, const std::string& text) {
  const auto columns = columns_of(stderr);
  std::fputs((columns ? fitted(text, *columns) : text).c_str(), stderr);
  if (!columns && !text.ends_with('\n')) std::fputc('\n', stderr);
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
      ->callback([] { print_columns(version_text() + "\n"); });
  arrange_help(app);
  try {
    app.parse(count, words);
  } catch (const CLI::ParseError& error) {
    // CLI11 throws --help and --version as errors with exit code 0.
    if (error.get_exit_code() != 0)
      return static_cast<int>(complain(ExitCode::usage, describe(app, error)));
    std::ostringstream asked, none;
    app.exit(error, asked, none);
    print_columns(asked.str());
    return static_cast<int>(ExitCode::done);
  }
  return static_cast<int>(exit_code);
}

}  // namespace troupe::apps
