#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace troupe::apps {

/// Returns the direct subcommands that the help lists.
std::vector<const CLI::App*> shown_commands(const CLI::App& command);
/// Returns the command's full name, beginning with the program's, with `between` between words.
std::string full_name(const CLI::App& command, char between);

/// Describes an error of the command line: the command, the word, a suggestion, and where to find
/// help.
std::string describe(const CLI::App& program, const CLI::ParseError& error);

}  // namespace troupe::apps
