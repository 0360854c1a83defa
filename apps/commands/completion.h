#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace troupe::apps {

/// What may stand in the place of a word.
struct Candidate {
  std::string word;
  std::string help;
};

/// What may stand in the place of the last of the words behind `troupe`, which may be empty.
/// Nothing where it is a file or a name that only a head knows.
std::vector<Candidate> candidates(const CLI::App& program, const std::vector<std::string>& words);

}  // namespace troupe::apps
