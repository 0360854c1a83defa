// Manual pages are generated from the commands and options themselves.

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "apps/program.h"
#include "catch.h"

using namespace troupe;
using namespace troupe::tests;

namespace {

std::string without_escapes(std::string page) {
  for (const std::string escape : {"\\fB", "\\fI", "\\fR"})
    for (auto at = page.find(escape); at != std::string::npos; at = page.find(escape, at))
      page.erase(at, escape.size());
  for (auto at = page.find("\\-"); at != std::string::npos; at = page.find("\\-", at))
    page.erase(at, 1);
  return page;
}

std::string page_of(const Workplace& here, const std::vector<std::string>& words) {
  const Ended ended = tests::troupe(here, words);
  INFO(ended.err);
  CHECK(ended.code == 0);
  return without_escapes(ended.out);
}

}  // namespace

TEST_CASE("every command has a manual page with all of its options", "[apps]") {
  const Workplace here;
  const auto program = page_of(here, {"man"});
  const auto commands = offered(here, {""});
  REQUIRE(commands.size() > 20);
  for (const auto& option : offered(here, {"--"})) CHECK(program.find(option) != std::string::npos);
  for (const auto& command : commands) {
    CAPTURE(command);
    CHECK(program.find("\ntroupe-" + command + "(1)\n") != std::string::npos);
    const auto page = page_of(here, {"man", command});
    CHECK(page.find("\n.SH NAME\ntroupe-" + command + " - ") != std::string::npos);
    for (const auto& option : offered(here, {command, "--"})) {
      CAPTURE(option);
      CHECK((page.find(option) != std::string::npos || program.find(option) != std::string::npos));
    }
    for (const auto& inner : offered(here, {command, ""}))
      if (!offered(here, {command, inner, "--"}).empty() &&
          page.find("\n.SH COMMANDS\n") != std::string::npos)
        CHECK(page.find("\n.SS troupe " + command + " " + inner + "\n") != std::string::npos);
  }
}

TEST_CASE("manual pages are written into a folder, and errors are reported", "[apps]") {
  const Workplace here;
  std::filesystem::create_directory(here.path() / "man1");
  REQUIRE(tests::troupe(here, {"man", "--to", "man1"}).code == 0);
  for (const auto& command : offered(here, {""})) {
    CAPTURE(command);
    CHECK(here.read("man1/troupe-" + command + ".1") == tests::troupe(here, {"man", command}).out);
  }
  CHECK(here.read("man1/troupe.1") == tests::troupe(here, {"man"}).out);

  const Ended nowhere = tests::troupe(here, {"man", "--to", "absent"});
  CHECK(nowhere.code == 1);
  CHECK(nowhere.err.find("absent/") != std::string::npos);
  const Ended unknown = tests::troupe(here, {"man", "trian"});
  CHECK(unknown.code == 2);
  CHECK(unknown.err.find("there is no command 'trian'") != std::string::npos);
}
