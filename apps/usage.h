#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace troupe::apps {

/// What was wrong with the words that the program was called with: the command that they are of,
/// the word, what may be meant, and where help is.
std::string describe(const CLI::App& program, const CLI::ParseError& error);

}  // namespace troupe::apps
