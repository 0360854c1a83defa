#include "config/toml/diagnostics.h"

#include "catch.h"

using namespace troupe;
using namespace troupe::config;

namespace {

std::string rendered(const std::string& text, Diagnostic diagnostic) {
  Sources sources;
  Value tree;
  sources.add("run.toml", text, tree);
  Diagnostics found;
  found.add(std::move(diagnostic));
  return found.render(sources);
}

}  // namespace

TEST_CASE("a diagnostic shows its line and underlines the word", "[config]") {
  CHECK(rendered("a = 1\nname = \"x y\"  # why\n",
                 {.message = "no good", .hint = "try z", .position = {2, 8}}) ==
        "run.toml:2:8: error: no good\n"
        "    2 | name = \"x y\"  # why\n"
        "      |        ^~~~~ try z\n");
}

TEST_CASE("lists and numbers are underlined whole", "[config]") {
  CHECK(rendered("s = [0, [3], 6] # x", {.message = "m", .position = {1, 5}}) ==
        "run.toml:1:5: error: m\n"
        "    1 | s = [0, [3], 6] # x\n"
        "      |     ^~~~~~~~~~~\n");
  CHECK(rendered("lr = 3.5e-4", {.message = "m", .position = {1, 6}}) ==
        "run.toml:1:6: error: m\n"
        "    1 | lr = 3.5e-4\n"
        "      |      ^~~~~~\n");
}

TEST_CASE("carets stand below the word, whatever characters come before it", "[config]") {
  CHECK(rendered("\t\u00e9 = 5", {.message = "m", .position = {1, 7}}) ==
        "run.toml:1:7: error: m\n"
        "    1 | \t\u00e9 = 5\n"
        "      | \t    ^\n");
}

TEST_CASE("a diagnostic shows only the part of a long line around the word", "[config]") {
  const auto text =
      rendered(std::string(500, 'a') + " = 5", {.message = "m", .position = {1, 504}});
  CHECK(text == "run.toml:1:504: error: m\n    1 | " + std::string(57, 'a') + " = 5\n      | " +
                    std::string(60, ' ') + "^\n");
}

TEST_CASE("a diagnostic shows a line of binary data in printable form", "[config]") {
  const auto text =
      rendered(std::string(9000, '\x80') + "= 5", {.message = "m", .position = {1, 9003}});
  CHECK(text.starts_with("run.toml:1:9003: error: m\n    1 | "));
}

TEST_CASE("control characters of a file never reach the terminal", "[config]") {
  const auto text = rendered("a = \x1b[31m", {.message = "found \x1b[2J", .position = {1, 1}});
  CHECK(text.find('\x1b') == text.npos);
}

TEST_CASE("a position beyond the text is accepted", "[config]") {
  CHECK(rendered("a = 1", {.message = "m", .position = {1, 99}}) ==
        "run.toml:1:99: error: m\n    1 | a = 1\n      |      ^\n");
}

TEST_CASE("a diagnostic without a position names only the source", "[config]") {
  CHECK(rendered("a = 1", {.message = "missing", .hint = "write it"}) ==
        "run.toml: error: missing; write it\n");
}

TEST_CASE("diagnostics are sorted by position, and at most fifty are shown", "[config]") {
  Sources sources;
  Value tree;
  sources.add("run.toml", "a\nb\n", tree);
  Diagnostics found;
  found.add({.message = "second", .position = {2, 1}});
  found.add({.severity = Diagnostic::Severity::warning, .message = "first", .position = {1, 1}});
  CHECK(found.render(sources) ==
        "run.toml:1:1: warning: first\n    1 | a\n      | ^\n"
        "run.toml:2:1: error: second\n    2 | b\n      | ^\n");
  for (int i = 0; i < 100; ++i) found.add({.message = "more"});
  CHECK(found.render(sources).ends_with("and 52 more\n"));
}

TEST_CASE("warnings alone are no failure", "[config]") {
  Diagnostics found;
  CHECK((found.ok() && found.empty()));
  found.add({.severity = Diagnostic::Severity::warning, .message = "odd"});
  CHECK((found.ok() && !found.empty()));
  found.add({.message = "wrong"});
  CHECK_FALSE(found.ok());
}

TEST_CASE("each diagnostic shows the text of its own source", "[config]") {
  Sources sources;
  Value first;
  Value second = Value::List{1};
  second.list()->front().position = {2, 3};
  sources.add("one", "a\nb\nc", first);
  sources.add("two", "d\ne", second);
  const auto place = sources.find(second.list()->front().position);
  CHECK(place.source == "two");
  CHECK(place.position == Position{2, 3});
  CHECK(place.line == "e");
  CHECK(sources.find({3, 1}).line == "c");
  CHECK(sources.find({4, 1}).line == "d");
}
