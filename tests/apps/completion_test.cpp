#include <cstdio>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "apps/program.h"
#include "catch.h"

using namespace troupe;
using namespace troupe::tests;

namespace {

std::set<std::string> words_in(const std::string& lines) {
  std::set<std::string> words;
  std::istringstream text(lines);
  for (std::string line; std::getline(text, line);) words.insert(line.substr(0, line.find('\t')));
  return words;
}

/// Returns the completions of the last word.
std::set<std::string> complete(std::vector<std::string> words) {
  const Workplace here;
  words.insert(words.begin(), {"complete", "--"});
  const Ended ended = tests::troupe(here, words);
  CHECK(ended.code == 0);
  return words_in(ended.out);
}

std::string output_of(const std::string& command) {
  std::string output;
  std::FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe);
  for (int c; (c = std::fgetc(pipe)) != EOF;) output += static_cast<char>(c);
  CHECK(pclose(pipe) == 0);
  return output;
}

}  // namespace

TEST_CASE("commands, options, choices and keys are completed", "[apps]") {
  const auto all = complete({""});
  CHECK(all.contains("train"));
  CHECK(all.contains("completion"));
  CHECK_FALSE(all.contains("node-process"));
  CHECK(complete({"tra"}) == std::set<std::string>{"trace", "train"});
  CHECK(complete({"config", "sh"}) == std::set<std::string>{"show"});
  CHECK(complete({"train", "run.toml", "--nod"}) == std::set<std::string>{"--nodes"});
  CHECK(complete({"train", "run.toml", "--carrier", ""}) == std::set<std::string>{"auto", "tcp"});
  CHECK(complete({"--output", "plain", "nodes", "c"}) == std::set<std::string>{"cordon"});
  CHECK(complete({"train", "run.toml", "--set", "optimizer.lr"}).contains("optimizer.lr="));
  // A file, or a name that only a head knows, has no completions.
  CHECK(complete({"train", ""}).empty());
  CHECK(complete({"train", "--nodes", ""}).empty());
}

TEST_CASE("bash completes with the generated script", "[apps]") {
  const std::string program = TROUPE_PROGRAM;
  CHECK(words_in(output_of("bash -c 'source <(\"" + program + "\" completion bash)\n" +
                           "COMP_WORDS=(\"" + program + "\" checkpoint \"\") COMP_CWORD=2\n" +
                           "_troupe \"" + program + "\"; printf \"%s\\n\" \"${COMPREPLY[@]}\"'")) ==
        std::set<std::string>{"export", "import", "inspect", "ls", "prune", "verify"});
}
