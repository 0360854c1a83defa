#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace troupe::apps {

/// A completion of a word.
struct Candidate {
  std::string word;
  std::string help;
};

/// Returns the completions for the last of the words after `troupe`; that word may be empty.
/// Returns none for a file, or a name that only a head knows.
std::vector<Candidate> candidates(const CLI::App& program, const std::vector<std::string>& words);

}  // namespace troupe::apps
