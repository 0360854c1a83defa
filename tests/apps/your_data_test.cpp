// Does what docs/how-to/your-data.md and docs/tutorial.md say, line by line.

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "apps/program.h"
#include "catch.h"

using namespace troupe;
using namespace troupe::tests;

namespace {

/// The indented lines of a page are commands. Fenced TOML is a configuration.
struct Page {
  std::string commands, config;
  int lines = 0;
};

Page read_page(const std::string& name) {
  std::ifstream file(TROUPE_TESTS "/../docs/" + name);
  REQUIRE(file);
  Page page;
  std::string fence;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("```")) {
      fence = fence.empty() ? line : "";
    } else if (fence == "```toml") {
      page.config += line + "\n";
    } else if (fence.empty() && line.starts_with("    ")) {
      page.commands += line.substr(4) + "\n";
      ++page.lines;
    }
  }
  return page;
}

/// Runs the commands of a page in a folder. The first one that fails ends the test.
void run_page(const Workplace& here, const Page& page) {
  here.write("commands", page.commands);
  const std::string program = std::filesystem::path(TROUPE_PROGRAM).parent_path().string();
  const std::string shell = "cd '" + here.path().string() + "' && PATH='" + program +
                            ":'$PATH bash -ex commands >out 2>err </dev/null";
  const int code = std::system(shell.c_str());
  INFO(here.read("out") << here.read("err"));
  REQUIRE(code == 0);
}

}  // namespace

TEST_CASE("the page on own data leads from a text to a sample", "[apps]") {
  const Workplace here;
  const Page page = read_page("how-to/your-data.md");
  REQUIRE(page.lines == 8);
  here.write("own.toml", page.config);
  run_page(here, page);
  const std::string out = here.read("out");
  CHECK(mentions(out, "\nYou may"));
  CHECK(mentions(out, " nats, perplexity "));
  CHECK(mentions(here.read("own.html"), "validation loss"));
}

TEST_CASE("the tutorial leads from a text to a sample, and further", "[apps]") {
  const Workplace here;
  const Page page = read_page("tutorial.md");
  REQUIRE(page.lines == 16);
  run_page(here, page);
  const std::string out = here.read("out");
  CHECK(mentions(out, "book.toml is written"));
  CHECK(mentions(out, "\nYou may"));
  CHECK(mentions(out, ", as in training"));
  CHECK(mentions(out, "350/350"));
  CHECK(mentions(out, "removed tuned"));
  CHECK_FALSE(std::filesystem::exists(here.path() / "runs/tuned"));
  CHECK(std::filesystem::exists(here.path() / "runs/pair"));
}
