// The help names every command once, fits a terminal, and has examples whose options exist.

#include <algorithm>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "apps/program.h"
#include "catch.h"

using namespace troupe;
using namespace troupe::tests;

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string help_of(const Workplace& here, std::vector<std::string> command) {
  command.insert(command.begin(), "help");
  const Ended ended = tests::troupe(here, command);
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  return ended.out;
}

/// Returns each command that does something, such as "data prepare".
std::vector<std::vector<std::string>> leaf_commands(const Workplace& here) {
  const std::set<std::string> groups = {"data",   "checkpoint", "config", "keys",
                                        "render", "bench",      "trace",  "model"};
  std::vector<std::vector<std::string>> commands;
  for (const auto& command : offered(here, {""})) {
    if (!groups.contains(command)) {
      commands.push_back({command});
      continue;
    }
    for (const auto& inner : offered(here, {command, ""})) commands.push_back({command, inner});
  }
  return commands;
}

}  // namespace

TEST_CASE("help lists every command once, in groups and lines that fit 80 columns", "[apps]") {
  const Workplace here;
  const std::string help = help_of(here, {});
  std::vector<std::string> listed, titles;
  for (const auto& line : lines_of(help)) {
    CAPTURE(line);
    CHECK(line.size() <= 80);
    if (line.ends_with(":")) titles.push_back(line);
    if (line.starts_with("  ") && line[2] != ' ' && line[2] != '-')
      listed.push_back(line.substr(2, line.find(' ', 2) - 2));
  }
  CHECK(titles.size() >= 6);
  CHECK(std::ranges::count(titles, "Subcommands:") == 0);
  auto all = offered(here, {""});
  std::ranges::sort(all);
  std::ranges::sort(listed);
  CHECK(listed == all);
  CHECK(tests::troupe(here, {"--help"}).out == help);
}

TEST_CASE("help of a command is what --help prints, with examples that it understands", "[apps]") {
  const Workplace here;
  const auto commands = leaf_commands(here);
  REQUIRE(commands.size() > 45);
  for (const auto& command : commands) {
    std::string name = "troupe";
    for (const auto& word : command) name += " " + word;
    CAPTURE(name);
    const std::string help = help_of(here, command);
    auto asked = command;
    asked.push_back("--help");
    CHECK(tests::troupe(here, asked).out == help);
    const auto at = help.find("\nExamples:\n");
    REQUIRE(at != help.npos);
    const auto known = offered(here, [&] {
      auto words = command;
      words.push_back("--");
      return words;
    }());
    for (const auto& line : lines_of(help.substr(at + 11))) {
      if (line.empty()) continue;
      CAPTURE(line);
      CHECK(line.size() <= 100);
      CHECK(line.find(name) != line.npos);
      std::istringstream words(line);
      for (std::string word; words >> word;) {
        if (!word.starts_with("--")) continue;
        CHECK((std::ranges::count(known, word) == 1 || word == "--output"));
      }
    }
  }
}

TEST_CASE("help tells the default of every number", "[apps]") {
  const Workplace here;
  // These have no default value: without them the command does something else.
  const std::set<std::string> without = {"--cap", "--fail-every", "--tolerance",
                                         "--train-tokenizer"};
  for (const auto& command : leaf_commands(here)) {
    const auto lines = lines_of(help_of(here, command));
    for (std::size_t i = 0; i < lines.size(); ++i) {
      std::istringstream words(lines[i]);
      std::string name, type;
      words >> name >> type;
      const bool number =
          type.starts_with("INT") || type.starts_with("UINT") || type.starts_with("FLOAT");
      if (!name.starts_with("--") || !number || without.contains(name)) continue;
      const std::string all = lines[i] + (i + 1 < lines.size() ? lines[i + 1] : "");
      CAPTURE(command, all);
      // Versions of CLI11 show the default as INT=16 or as INT [16].
      CHECK((all.find("default") != all.npos || type.find('=') != type.npos ||
             lines[i].find(type + " [") != std::string::npos));
    }
  }
}

TEST_CASE("help of an unknown command names a similar one", "[apps]") {
  const Workplace here;
  const Ended ended = tests::troupe(here, {"help", "trian"});
  CHECK(ended.code == 2);
  CHECK(ended.err ==
        "troupe: there is no command 'trian'; is `troupe train` meant? `troupe help` lists them\n");
  CHECK(tests::troupe(here, {"help", "data", "prepaer"}).err.find("`troupe data prepare` meant") !=
        std::string::npos);
}

TEST_CASE("a schedule is drawn with four stages and eight micro-batches unless told", "[apps]") {
  const Workplace here;
  const Ended plain = tests::troupe(here, {"schedule", "1f1b"});
  CHECK(plain.code == 0);
  CHECK(plain.out ==
        tests::troupe(here, {"schedule", "1f1b", "--stages", "4", "--micro-batches", "8"}).out);
  const Ended none = tests::troupe(here, {"schedule", "1f1b", "--stages", "0"});
  CHECK(none.code == 2);
  CHECK(none.err.find("--stages") != std::string::npos);
}
