#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace troupe::apps {

/// The commands directly below `command` that help lists.
std::vector<const CLI::App*> shown_commands(const CLI::App& command);
/// The command's name from the program's name on, with `between` between two words.
std::string full_name(const CLI::App& command, char between);

/// What was wrong with the words that the program was called with: the command that they are of,
/// the word, what may be meant, and where help is.
std::string describe(const CLI::App& program, const CLI::ParseError& error);

}  // namespace troupe::apps
