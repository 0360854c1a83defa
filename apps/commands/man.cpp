// `troupe man`: manual pages, generated from the same commands and options as --help and
// completion.

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apps/command.h"
#include "apps/commands/usage.h"

namespace troupe::apps {
namespace {

/// Escapes text for roff, which interprets '\\', '-' and a control character at the start of a
/// line.
std::string roff_text(std::string_view text) {
  std::string out;
  bool starts_line = true;
  for (const char c : text) {
    if (starts_line && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
    starts_line = c == '\n';
  }
  return out;
}

std::string roff_bold(std::string_view text) { return "\\fB" + roff_text(text) + "\\fR"; }
std::string roff_italic(std::string_view text) { return "\\fI" + roff_text(text) + "\\fR"; }

std::string page_section(std::string_view title) { return ".SH " + std::string(title) + "\n"; }

std::string page_entry(const std::string& term, std::string_view text) {
  return ".TP\n" + term + "\n" + roff_text(text) + "\n";
}

/// Returns "{a,b}" without the type before it. Returns any other type unchanged.
std::string option_value(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const auto choices = type.find('{');
  return choices == std::string::npos ? type : type.substr(choices);
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

std::string option_entry(const CLI::Option& option) {
  std::string term;
  const auto add = [&](const std::string& name) {
    if (!term.empty()) term += ", ";
    term += roff_bold(name);
  };
  for (const auto& name : option.get_snames()) add("-" + name);
  for (const auto& name : option.get_lnames()) add("--" + name);
  if (takes_value(option)) term += " " + roff_italic(option_value(option));
  std::string text = option.get_description();
  const std::string variable = option.get_envname();
  if (!variable.empty()) text += " (variable: " + variable + ")";
  if (option.get_required()) text += " (required)";
  return page_entry(term, text);
}

std::string page_synopsis(const CLI::App& command) {
  std::string text = roff_bold(full_name(command, ' ')) + " [" + roff_italic("OPTIONS") + "]";
  for (const auto* option : command.get_options()) {
    if (!option->get_positional()) continue;
    const auto name = roff_italic(option->get_name(true));
    text += option->get_required() ? " " + name : " [" + name + "]";
    if (option->get_items_expected_max() > 1) text += " ...";
  }
  if (!shown_commands(command).empty()) text += " " + roff_italic("COMMAND");
  return text + "\n";
}

std::string arguments_and_options(const CLI::App& command) {
  std::string arguments, options;
  for (const auto* option : command.get_options()) {
    if (option->get_positional())
      arguments += page_entry(roff_italic(option->get_name(true)), option->get_description());
    else if (!option->get_group().empty())
      options += option_entry(*option);
  }
  return arguments + options;
}

std::string page_header(const CLI::App& command) {
  std::string name = full_name(command, '-');
  for (char& c : name)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  // Omits the date, so that equal sources make equal pages.
  return ".TH \"" + roff_text(name) +
         "\" 1 \"\" \"troupe " TROUPE_VERSION "\" \"User Commands\"\n" + page_section("NAME") +
         roff_text(full_name(command, '-')) + " \\- " + roff_text(command.get_description()) +
         "\n" + page_section("SYNOPSIS") + page_synopsis(command);
}

struct ManualRow {
  const char* word;
  const char* text;
};

constexpr ManualRow manual_exit_status[] = {
    {"0", "done"},
    {"1", "the run or the command failed"},
    {"2", "the command line is wrong"},
    {"3", "a configuration, a plan, an input file or a request to a head is invalid"},
    {"4", "troupe doctor found something that fails"},
    {"5", "no head answers, or it has another version, or it does not know our keys"},
    {"6", "a run had too few nodes for too long"},
    {"75", "stopped with its state saved: run it again with --resume"},
    {"76", "the nodes of this head know a newer head"},
    {"130, 143", "interrupted a second time, without saving"},
};

constexpr ManualRow manual_environment[] = {
    {"TROUPE_HEAD", "the head's address, if --head does not name one"},
    {"TROUPE_KEYS", "the key file of this node or person, if --keys does not name one"},
    {"TROUPE_HEAD_KEY", "the head's public key, if --head-key does not give it"},
    {"TROUPE_ISA",
     "the vector instructions that this process computes with: plain, neon, avx2, avx512 or amx "
     "(default: the best of the processor); a precision has the same bits with each of them"},
    {"XDG_STATE_HOME",
     "where the address of the newest head is remembered (~/.local/state), for folders without a "
     "head of their own"},
    {"NOTIFY_SOCKET, WATCHDOG_USEC",
     "set by systemd: head and node report to it, see sd_notify(3)"},
};

constexpr ManualRow manual_files[] = {
    {"runs/NAME/", "events, checkpoints and other files of a run, below the working folder"},
    {".troupe/", "what a head remembers from one life to the next (head --state)"},
    {"/usr/share/troupe/config/", "example configurations, if the package is installed"},
    {"/usr/share/troupe/monitoring/",
     "alert rules for Prometheus and a board for Grafana, if the package is installed"},
    {"/usr/share/doc/troupe/", "documentation, if the package is installed"},
};

template <std::size_t size>
std::string page_table(const char* title, const ManualRow (&rows)[size]) {
  std::string text = page_section(title);
  for (const auto& [word, meaning] : rows) text += page_entry(roff_bold(word), meaning);
  return text;
}

std::string program_page(const CLI::App& program) {
  std::string text = page_header(program) + page_section("DESCRIPTION") +
                     roff_text(
                         "Troupe splits a model into stages on many devices and trains it as a "
                         "pipeline. A run goes on when machines vanish, with the same bits.\n") +
                     page_section("COMMANDS");
  for (const auto* command : shown_commands(program))
    text += page_entry(roff_bold(full_name(*command, '-')) + "(1)", command->get_description());
  return text + page_section("OPTIONS") + arguments_and_options(program) +
         page_table("EXIT STATUS", manual_exit_status) +
         page_table("ENVIRONMENT", manual_environment) + page_table("FILES", manual_files) +
         page_section("EXAMPLES") + "Train a small model:\n.PP\n.RS\n.nf\n" +
         roff_text("troupe train /usr/share/troupe/config/quickstart.toml\n") + ".fi\n.RE\n";
}

std::string command_page(const CLI::App& command) {
  std::string text = page_header(command);
  if (const auto options = arguments_and_options(command); !options.empty())
    text += page_section("OPTIONS") + options;
  if (const auto inner = shown_commands(command); !inner.empty()) {
    text += page_section("COMMANDS");
    for (const auto* one : inner)
      text += ".SS " + roff_text(full_name(*one, ' ')) + "\n" + roff_text(one->get_description()) +
              ".\n.PP\n" + page_synopsis(*one) + arguments_and_options(*one);
  }
  if (const auto examples = examples_of(command); !examples.empty()) {
    text += page_section("EXAMPLES") + ".nf\n";
    for (const auto& line : examples) text += roff_text(line) + "\n";
    text += ".fi\n";
  }
  return text + page_section("SEE ALSO") + roff_bold("troupe") +
         "(1) has the options that all commands share, the exit status and the environment.\n";
}

std::string manual_page(const CLI::App& command) {
  return command.get_parent() ? command_page(command) : program_page(command);
}

Status write_page(const std::filesystem::path& folder, const CLI::App& command) {
  const auto path = folder / (full_name(command, '-') + ".1");
  std::ofstream file(path, std::ios::binary);
  file << manual_page(command);
  file.close();
  if (!file) return Error{path.string() + ": the page cannot be written; does the folder exist?"};
  return Done{};
}

ExitCode write_manual(const CLI::App& program, const std::string& name, const std::string& folder) {
  if (!folder.empty()) {
    auto commands = shown_commands(program);
    commands.push_back(&program);
    for (const auto* command : commands)
      if (auto written = write_page(folder, *command); !written)
        return complain(ExitCode::failed, "error: " + written.error().text);
    return ExitCode::done;
  }
  const CLI::App* command = name.empty() ? &program : nullptr;
  for (const auto* one : shown_commands(program))
    if (one->get_name() == name) command = one;
  if (!command)
    return complain(ExitCode::usage, "error: troupe man: there is no command '" + name +
                                         "'; `troupe --help` lists the commands");
  const auto text = manual_page(*command);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return ExitCode::done;
}

struct ManArguments {
  std::string command;
  std::string folder;
};

}  // namespace

void add_man(Program& program) {
  CLI::App* command = program.app.add_subcommand("man", "print a manual page (for packages)");
  command->group("");  // Hidden from the help: only packages need it.
  const auto arguments = std::make_shared<ManArguments>();
  command->add_option("command", arguments->command,
                      "print the page of this command (default: of the program)");
  command->add_option("--to", arguments->folder, "write all manual pages into this folder");
  command->callback([&program = program.app, &exit_code = program.exit_code, arguments] {
    exit_code = write_manual(program, arguments->command, arguments->folder);
  });
}

}  // namespace troupe::apps
