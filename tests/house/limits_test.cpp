// A key that nothing reads is a promise that nobody keeps.

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "catch.h"
#include "config/schema.h"

namespace {

/// The sources of a run, a head and a node. What only the simulator reads has no effect in a run.
std::string sources_of_runs() {
  const std::set<std::string> not_in_runs = {"sim.cpp", "sim_request.cpp"};
  std::string text;
  for (const std::string folder : {"apps", "actors"})
    for (const auto& entry : std::filesystem::recursive_directory_iterator(TROUPE_ROOT "/" + folder)) {
      if (!entry.is_regular_file() || not_in_runs.contains(entry.path().filename().string()))
        continue;
      std::ifstream file(entry.path());
      for (std::string line; std::getline(file, line);)
        text += line.substr(0, line.find("//")) + "\n";
    }
  return text;
}

bool names(const std::string& text, const std::string& word) {
  const auto is_of_name = [](char c) { return c == '_' || (c >= 'a' && c <= 'z'); };
  for (auto at = text.find(word); at != text.npos; at = text.find(word, at + 1))
    if (!is_of_name(text[at + word.size()])) return true;
  return false;
}

}  // namespace

TEST_CASE("a run reads every key of [limits]", "[house]") {
  const auto sources = sources_of_runs();
  int keys = 0;
  for (const auto& key : troupe::config::schema().keys()) {
    if (!key.name.starts_with("limits.")) continue;
    ++keys;
    INFO(key.name);
    CHECK(names(sources, key.name));
  }
  CHECK(keys > 10);
  CHECK_FALSE(names(sources, "limits.stuck_factor"));
}
