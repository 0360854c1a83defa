// `troupe init` makes data and a configuration from a text.

#include <unistd.h>

#include <filesystem>
#include <string>

#include "apps/program.h"
#include "apps/terminal.h"
#include "catch.h"

using namespace troupe;
using namespace troupe::tests;

namespace {

std::string numbered_book(int lines) {
  std::string text;
  for (int i = 0; i < lines; ++i)
    text += "line " + std::to_string(i * 7919 % 1000) + " of a book that nobody reads\n";
  return text;
}

}  // namespace

TEST_CASE("init chooses bytes for a short text and a tokenizer for a longer one", "[apps]") {
  const Workplace here;
  here.write("short.txt", numbered_book(400));
  const Ended small = tests::troupe(here, {"init", "short.txt", "--steps", "3"});
  INFO(small.err);
  REQUIRE(small.code == 0);
  CHECK(mentions(small.out, " bytes for training"));
  CHECK(mentions(small.out, "time: about "));
  CHECK(mentions(small.out, "troupe train short.toml"));
  CHECK(mentions(here.read("short.toml"), "vocab   = 256"));
  CHECK(tests::troupe(here, {"config", "check", "short.toml", "--data"}).code == 0);
  CHECK(tests::troupe(here, {"train", "short.toml"}).code == 0);

  here.write("my long book.txt", numbered_book(3000));
  const Ended longer =
      tests::troupe(here, {"init", "my long book.txt", "--vocabulary", "300", "--size", "small"});
  INFO(longer.err);
  REQUIRE(longer.code == 0);
  CHECK(mentions(longer.out, "my-long-book_tokenizer.json has 300 tokens"));
  CHECK(mentions(here.read("my-long-book.toml"), "layers  = 4"));
  CHECK(tests::troupe(here, {"config", "check", "my-long-book.toml", "--data"}).code == 0);
}

TEST_CASE("init overwrites nothing, and says what is wrong with a text", "[apps]") {
  const Workplace here;
  here.write("a.txt", numbered_book(400));
  here.write("a.toml", "mine");
  const Ended taken = tests::troupe(here, {"init", "a.txt"});
  CHECK(taken.code == 3);
  CHECK(mentions(taken.err, "a.toml: is there already"));
  CHECK(here.read("a.toml") == "mine");
  here.write("b.txt", "too short");
  const Ended few = tests::troupe(here, {"init", "b.txt"});
  CHECK(few.code == 3);
  CHECK(mentions(few.err, "give a longer text"));
  CHECK_FALSE(std::filesystem::exists(here.path() / "b.toml"));
  CHECK(tests::troupe(here, {"init", "nothing.txt"}).code == 3);
  CHECK(tests::troupe(here, {"init", "a.txt", "--name", "../a"}).code == 2);
}

TEST_CASE("init asks on a terminal, and nowhere else", "[apps]") {
  const Workplace here;
  here.write("a.txt", numbered_book(400));
  const Ended piped = tests::troupe(here, {"init"});
  CHECK(piped.code == 2);
  CHECK(mentions(piped.err, "name the text to train on"));

  Terminal terminal(80);
  std::string shown;
  const Ended asked = tests::troupe(here, Launch{{"init", "--steps", "5"},
                                                 {},
                                                 [&] {
                                                   dup2(terminal.slave(), STDIN_FILENO);
                                                   dup2(terminal.slave(), STDERR_FILENO);
                                                 },
                                                 [&](pid_t) {
                                                   terminal.type("a.txt\nmine\n\n");
                                                   shown = terminal.read_all();
                                                 }});
  INFO(shown);
  CHECK(asked.code == 0);
  CHECK(mentions(shown, "Text file to train on: "));
  CHECK(mentions(shown, "Name of the run [a]: "));
  CHECK(mentions(here.read("mine.toml"), "name = \"mine\""));
}
