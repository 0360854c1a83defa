#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace troupe::apps {

// Checks of options. Those of CLI11 tell the bounds of the type as well.
CLI::Validator above_zero();
CLI::Validator not_negative();

/// Returns the direct subcommands that the help lists.
std::vector<const CLI::App*> shown_commands(const CLI::App& command);
/// Returns the command's full name, beginning with the program's, with `between` between words.
std::string full_name(const CLI::App& command, char between);

/// Returns example command lines of a command, or of all commands inside it.
std::vector<std::string> examples_of(const CLI::App& command);
/// Arranges the program's help in groups, and adds examples to the help of each command. Call it
/// once all commands are there.
void arrange_help(CLI::App& program);

/// Returns "troupe data: there is no command 'x'; is `troupe data make` meant? ".
std::string no_command(const CLI::App& command, const std::string& word);
/// Describes an error of the command line: the command, the word, a suggestion, and where to find
/// help.
std::string describe(const CLI::App& program, const CLI::ParseError& error);

}  // namespace troupe::apps
