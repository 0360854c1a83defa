// Does what docs/how-to/your-data.md says, line by line.

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "apps/program.h"
#include "catch.h"

using namespace troupe;
using namespace troupe::tests;

TEST_CASE("the page on own data leads from a text to a sample", "[apps]") {
  const Workplace here;
  std::ifstream page(TROUPE_TESTS "/../docs/how-to/your-data.md");
  REQUIRE(page);
  std::string commands, config;
  int lines = 0;
  bool in_config = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("```")) {
      in_config = line == "```toml";
    } else if (in_config) {
      config += line + "\n";
    } else if (line.starts_with("    ")) {
      commands += line.substr(4) + "\n";
      ++lines;
    }
  }
  REQUIRE(lines == 10);
  here.write("own.toml", config);
  here.write("commands", commands);
  const std::string program = std::filesystem::path(TROUPE_PROGRAM).parent_path().string();
  const std::string shell = "cd '" + here.path().string() + "' && PATH='" + program +
                            ":'$PATH bash -e commands >out 2>err";
  const int code = std::system(shell.c_str());
  INFO(here.read("out") << here.read("err"));
  CHECK(code == 0);
  CHECK(here.read("out").find("\nYou may") != std::string::npos);
  CHECK(here.read("out").find(" nats, perplexity ") != std::string::npos);
  CHECK(here.read("own.html").find("validation loss") != std::string::npos);
}
