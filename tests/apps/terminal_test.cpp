// The program on terminals of several widths.

#include "apps/terminal.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <sstream>
#include <string>
#include <vector>

#include "apps/program.h"
#include "apps/quickstart.h"
#include "apps/small_cluster.h"
#include "catch.h"
#include "core/json.h"

using namespace troupe;
using namespace troupe::tests;

namespace {

/// Returns each state of each line, without the sequence that clears the rest of a line.
std::vector<std::string> drawn(const std::string& text) {
  std::vector<std::string> states;
  std::string state;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 3, "\x1b[K") == 0) {
      i += 2;
    } else if (text[i] == '\r' || text[i] == '\n') {
      states.push_back(state);
      state.clear();
    } else {
      state += text[i];
    }
  }
  states.push_back(state);
  return states;
}

std::string train_on(unsigned short columns) {
  const Workplace here;
  Terminal terminal(columns);
  std::string shown;
  const Ended ended = tests::troupe(here, Launch{{"train", quickstart, "--set", "train.steps=120"},
                                                 {},
                                                 [&] { dup2(terminal.slave(), STDERR_FILENO); },
                                                 [&](pid_t) { shown = terminal.read_all(); }});
  CHECK(ended.code == 0);
  return shown;
}

}  // namespace

TEST_CASE("all lines fit terminals of 60, 80 and 100 columns", "[apps]") {
  for (const unsigned short columns : {60, 80, 100}) {
    const std::string shown = train_on(columns);
    INFO(columns << " columns:\n" << shown);
    int lines = 0;
    for (const auto& line : drawn(shown)) {
      CHECK(line.size() <= columns);
      if (!line.starts_with("step ") || line.find(" of 120 ") == std::string::npos) continue;
      ++lines;
      CHECK(line.size() < columns);
      CHECK(line.find("  loss ") != std::string::npos);
      CHECK(line.find('-') == std::string::npos);  // No number is below 0.
    }
    CHECK(lines == 120);
    CHECK(shown.find("step 120 of 120  100 %  ") != std::string::npos);
    // One line at most stays for the steps. A longer line continues with an indentation.
    int stay = 0;
    for (auto at = shown.find('\n'); at != shown.npos; at = shown.find('\n', at + 1))
      stay += shown.compare(at + 1, 1, " ") == 0 ? 0 : 1;
    CHECK(stay < 15);
  }
}

TEST_CASE("without a terminal every tenth step has a line of its own", "[apps]") {
  const Workplace here;
  const Ended ended = tests::troupe(here, {"train", quickstart, "--set", "train.steps=40"});
  REQUIRE(ended.code == 0);
  CHECK(ended.err.find('\r') == std::string::npos);
  CHECK(ended.err.find('\x1b') == std::string::npos);
  std::istringstream text(ended.err);
  int lines = 0;
  for (std::string line; std::getline(text, line);)
    lines += line.find(" of 40 ") != std::string::npos ? 1 : 0;
  CHECK(lines == 4);
  CHECK(ended.err.find("\nstep 10 of 40   25 %  loss ") != std::string::npos);
}

TEST_CASE("top sorts by a key and shows the page of a run, its stacks and ways", "[apps]") {
  SmallCluster cluster;
  REQUIRE(cluster.run({"submit", quickstart, "--set", "train.steps=100000"}).code == 0);
  Terminal terminal(100, 30);
  std::string sorted, page, stacks, ways, all;
  const Ended ended = tests::troupe(
      cluster.here(), Launch{{"top", "--every", "0.1"},
                             {},
                             [&] {
                               setenv("XDG_STATE_HOME", cluster.here().path().c_str(), 1);
                               unsetenv("TROUPE_HEAD");
                               setenv("TERM", "xterm", 1);
                               for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
                                 dup2(terminal.slave(), stream);
                             },
                             [&](pid_t) {
                               terminal.read_until("sort: name");
                               terminal.type("s");
                               sorted = terminal.read_until("sort: state");
                               terminal.type("\n");
                               page = terminal.read_until("b back") + terminal.read_until("b back");
                               terminal.type("s");
                               stacks = terminal.read_until("device 0 (thread ");
                               terminal.type("b");
                               terminal.read_until("s stacks");
                               terminal.type("c");
                               ways = terminal.read_until("round trip");
                               terminal.type("b");
                               terminal.read_until("s stacks");
                               terminal.type("b");
                               all = terminal.read_until("sort: state");
                               terminal.type("q");
                               terminal.read_all();
                             }});
  CHECK(ended.code == 0);
  INFO(sorted << page << stacks << ways);
  CHECK(sorted.ends_with("sort: state"));
  CHECK(page.find("quickstart: ") != std::string::npos);
  CHECK(page.find("events, the newest first") != std::string::npos);
  CHECK(stacks.find("quickstart: stacks") != std::string::npos);
  CHECK(stacks.ends_with("device 0 (thread "));
  CHECK(ways.find("quickstart: ways between its nodes") != std::string::npos);
  CHECK(ways.ends_with("round trip"));
  CHECK(all.ends_with("sort: state"));
}

TEST_CASE("top draws on a screen of its own until q", "[apps]") {
  SmallCluster cluster;
  REQUIRE(cluster.run({"submit", quickstart, "--set", "train.steps=100000"}).code == 0);
  constexpr unsigned short columns = 60, rows = 6;
  Terminal terminal(columns, rows);
  std::string shown;
  const Ended ended = tests::troupe(
      cluster.here(), Launch{{"top", "--every", "0.1"},
                             {},
                             [&] {
                               setenv("XDG_STATE_HOME", cluster.here().path().c_str(), 1);
                               unsetenv("TROUPE_HEAD");
                               setenv("TERM", "xterm", 1);
                               unsetenv("NO_COLOR");
                               for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
                                 dup2(terminal.slave(), stream);
                             },
                             [&](pid_t) {
                               // Until the second picture.
                               shown = terminal.read_until("q ends");
                               shown += terminal.read_until("q ends");
                               terminal.type("q");
                               shown += terminal.read_all();
                             }});
  INFO(shown);
  CHECK(ended.code == 0);
  CHECK(shown.starts_with("\x1b[?1049h"));
  CHECK(shown.ends_with("\x1b[?1049l"));
  CHECK(shown.find("\x1b[1;1Hrun       state") != std::string::npos);
  const bool has_colours = shown.find("\x1b[33mstarting\x1b[m") != shown.npos ||
                           shown.find("\x1b[32mrunning\x1b[m") != shown.npos;
  CHECK(has_colours);
  for (const auto& line : drawn(shown)) {
    // A sequence of control characters begins with an escape and ends with a letter.
    std::size_t width = 0;
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (line[i] != '\x1b') {
        width += (static_cast<unsigned char>(line[i]) & 0xc0) != 0x80 ? 1 : 0;
        continue;
      }
      while (!std::isalpha(static_cast<unsigned char>(line[i]))) ++i;
      if (line[i] != 'm') width = 0;  // A colour moves nothing.
    }
    // The last column stays free.
    CHECK(width < columns);
  }
}

TEST_CASE("top prints its tables once for scripts and on dumb terminals", "[apps]") {
  SmallCluster cluster;
  REQUIRE(cluster.run({"submit", quickstart, "--set", "train.steps=5", "--wait"}).code == 0);
  const Ended json = cluster.run({"top", "--once", "--output", "json"});
  CHECK(json.code == 0);
  const auto status = parse_json(json.out);
  REQUIRE(status);
  CHECK(status->find("runs")->list()->size() == 1);
  CHECK(status->find("nodes")->list()->size() == 1);
  for (const bool is_dumb : {false, true}) {
    Terminal terminal(100, 30);
    std::vector<std::string> words{"top"};
    if (!is_dumb) words.emplace_back("--once");
    std::string shown;
    const Ended ended = tests::troupe(
        cluster.here(), Launch{words,
                               {},
                               [&] {
                                 setenv("XDG_STATE_HOME", cluster.here().path().c_str(), 1);
                                 unsetenv("TROUPE_HEAD");
                                 setenv("TERM", is_dumb ? "dumb" : "xterm", 1);
                                 dup2(terminal.slave(), STDOUT_FILENO);
                               },
                               [&](pid_t) { shown = terminal.read_all(); }});
    CAPTURE(is_dumb, shown);
    CHECK(ended.code == 0);
    CHECK(shown.find("\x1b[?1049h") == shown.npos);
    CHECK(shown.find("quickstart") != shown.npos);
  }
  const Workplace nowhere;
  CHECK(tests::troupe(nowhere, {"top", "--once", "--head", "tcp://127.0.0.1:1"}).code == 5);
}

TEST_CASE("tables of a head fit a terminal of 60 columns", "[apps]") {
  SmallCluster cluster;
  const std::string name = "a-run-whose-name-is-longer-than-it-had-to-be";
  REQUIRE(cluster.run({"submit", quickstart, "--set", "name=" + name}).code == 0);
  for (const char* command : {"status", "runs", "nodes"}) {
    constexpr unsigned short columns = 60;
    Terminal terminal(columns);
    std::string shown;
    const Ended ended = tests::troupe(
        cluster.here(), Launch{{command},
                               {},
                               [&] {
                                 setenv("XDG_STATE_HOME", cluster.here().path().c_str(), 1);
                                 unsetenv("TROUPE_HEAD");
                                 setenv("NO_COLOR", "1", 1);
                                 dup2(terminal.slave(), STDOUT_FILENO);
                               },
                               [&](pid_t) { shown = terminal.read_all(); }});
    INFO(command << ":\n" << shown);
    CHECK(ended.code == 0);
    CHECK(shown.find('\x1b') == shown.npos);
    for (const auto& line : drawn(shown)) CHECK(line.size() <= columns + std::string("…").size());
  }
}

TEST_CASE("a schedule is drawn on a terminal, and written as its text elsewhere", "[apps]") {
  const Workplace here;
  const std::vector<std::string> words{"schedule", "1f1b", "--stages", "2", "--micro-batches", "3"};
  constexpr unsigned short columns = 80;
  Terminal terminal(columns);
  std::string shown;
  const Ended ended = tests::troupe(here, Launch{words,
                                                 {},
                                                 [&] {
                                                   setenv("TERM", "xterm", 1);
                                                   unsetenv("NO_COLOR");
                                                   dup2(terminal.slave(), STDOUT_FILENO);
                                                 },
                                                 [&](pid_t) { shown = terminal.read_all(); }});
  CHECK(ended.code == 0);
  CHECK(shown.find("device 0  \x1b[38;5;16;48;5;32mF0F1\x1b[m  ") != shown.npos);
  CHECK(tests::troupe(here, words).out.starts_with("sched 1\n"));
}

TEST_CASE("the help of each command fits a terminal of 80 columns", "[apps]") {
  const Workplace here;
  constexpr unsigned short columns = 80;
  const auto shown_by = [&](const std::vector<std::string>& words) {
    Terminal terminal(columns);
    std::string shown;
    const Ended ended =
        tests::troupe(here, Launch{words,
                                   {},
                                   [&] {
                                     for (const int stream : {STDOUT_FILENO, STDERR_FILENO})
                                       dup2(terminal.slave(), stream);
                                   },
                                   [&](pid_t) { shown = terminal.read_all(); }});
    return shown;
  };
  std::vector<std::vector<std::string>> all{{"--help"},
                                            {"--version"},
                                            {"schedule", "--list"},
                                            {"model", "ls"},
                                            {"model", "show", "gpt2"},
                                            {"doctor"},
                                            {"train", quickstart, "--set", "model.widht=3"}};
  std::istringstream lines(shown_by({"help"}));
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("  ") && std::islower(static_cast<unsigned char>(line[2])))
      all.push_back({"help", line.substr(2, line.find(' ', 2) - 2)});
  CHECK(all.size() > 40);
  for (const auto& words : all) {
    const auto shown = shown_by(words);
    INFO(words.back() << ":\n" << shown);
    CHECK(!shown.empty());
    for (const auto& line : drawn(shown)) CHECK(line.size() <= columns);
  }
}

TEST_CASE("an error is broken between words on a terminal", "[apps]") {
  const Workplace here;
  constexpr unsigned short columns = 60;
  Terminal terminal(columns);
  std::string shown;
  const Ended ended = tests::troupe(here, Launch{{"schedule", "zb-v", "--stages", "3"},
                                                 {},
                                                 [&] { dup2(terminal.slave(), STDERR_FILENO); },
                                                 [&](pid_t) { shown = terminal.read_all(); }});
  CHECK(ended.code == 3);
  CHECK(shown ==
        "error: zb-v has 2 stages on each device, which does not\r\n"
        "    divide 3 stages; use 2 or 4\r\n");
}
