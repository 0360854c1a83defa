// Tables of nodes and runs for terminals of several widths.

#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "apps/client/head_tables.h"
#include "apps/client/table.h"
#include "catch.h"

namespace troupe::apps {
namespace {

Value run_called(const std::string& name, std::int64_t step, double loss) {
  Value run;
  run.set("name", name);
  run.set("state", "running");
  run.set("step", step);
  run.set("steps", 20'000);
  run.set("loss", loss);
  run.set("goodput", 0.972);
  run.set("where", "alpha: device 0; beta-with-a-longer-name: device 1");
  return run;
}

Value answer_with(Value::List runs) {
  Value answer;
  answer.set("runs", std::move(runs));
  return answer;
}

std::vector<std::string> rows_of(const std::string& text) {
  std::vector<std::string> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) rows.push_back(line);
  return rows;
}

using Speeds = std::map<std::string, double>;

TEST_CASE("a text is cut to columns of a terminal, not to bytes", "[apps]") {
  CHECK(width_of("größe") == 5);
  CHECK(cut_end("größe", 5) == "größe");
  CHECK(cut_end("größer", 5) == "größ…");
  CHECK(cut_end("a", 0).empty());
}

TEST_CASE("runs with long names fit a terminal of 80 columns", "[apps]") {
  const auto name = "a-run-with-a-rather-long-name";
  const auto answer = answer_with({run_called(name, 301, 1.25), run_called("own", 7, 1.5)});
  const Speeds speeds{{name, 70.231}, {"own", 0.5}};
  const auto narrow = rows_of(runs_table(answer, {79}, speeds));
  REQUIRE(narrow.size() == 5);
  for (const auto& row : narrow) CHECK(width_of(row) <= 79);
  CHECK(narrow[0].starts_with("run "));
  CHECK(narrow[0].ends_with("steps/s    left"));
  CHECK(narrow[1].starts_with("a-run-with…-long-name  running "));
  CHECK(narrow[1].ends_with(" 4m"));
  CHECK(narrow[2] == "    alpha: device 0; beta-with-a-longer-name: device 1");
  const auto wide = rows_of(runs_table(answer, {139}, speeds));
  REQUIRE(wide.size() == 3);
  CHECK(wide[1].starts_with(name));
  CHECK(wide[1].ends_with("alpha: device 0; beta-with-a-longer-name: device 1"));
  const auto narrower = rows_of(runs_table(answer, {69}, speeds));
  CHECK(narrower[0].find("goodput") == std::string::npos);
  CHECK(narrower[0].ends_with("steps/s    left"));
  CHECK(narrower[1].starts_with("a-run-with…long-name  "));
  CHECK(narrower[3].starts_with("own "));
  // Names keep something of their ends, however narrow it is.
  CHECK(rows_of(runs_table(answer, {10}, speeds))[1].starts_with("a-ru…ame  running"));
}

TEST_CASE("a node's processors and memory in use stand beside the totals, if known", "[apps]") {
  Value node;
  node.set("name", "alpha");
  node.set("cores", 8);
  node.set("memory", std::int64_t{16} << 30);
  Value answer;
  answer.set("nodes", Value::List{node});
  auto row = rows_of(nodes_table(answer)).back();
  CHECK(row.find(" 8      -") != row.npos);
  CHECK(row.find(" 16.0 GiB") != row.npos);
  node.set("busy", 0.374);
  node.set("memory_used", std::int64_t{3} << 30);
  answer.set("nodes", Value::List{node});
  row = rows_of(nodes_table(answer)).back();
  CHECK(row.find(" 37 %") != row.npos);
  CHECK(row.find(" 3.0/16.0 GiB") != row.npos);
}

TEST_CASE("the measured time of a step stands before the expected one", "[apps]") {
  auto run = run_called("own", 7, 1.5);
  const std::string why = "expected time of a step: 1f1b with 2 stages and 1 replica 1.24 ms";
  run.set("plan_why", why);
  CHECK(rows_of(runs_table(answer_with({run}), {139})).back() == "    " + why);
  run.set("step_seconds", 0.0021);
  const auto rows = rows_of(runs_table(answer_with({run}), {139}));
  REQUIRE(rows.size() > 2);
  CHECK(rows[rows.size() - 2] == "    a step takes 2.10 ms");
  CHECK(rows.back() == "    " + why);
  run.set("state", "done");
  CHECK(rows_of(runs_table(answer_with({run}), {139})).back() == "    a step took 2.10 ms");
}

TEST_CASE("a colour takes no columns, and ends where a text is cut", "[apps]") {
  const auto red = toned("größer", Tone::bad);
  CHECK(red != "größer");
  CHECK(width_of(red) == 6);
  CHECK(cut_end(red, 6) == red);
  CHECK(cut_end(red, 5) == "\x1b[31mgröß…\x1b[m");
  CHECK(cut_end("ab" + red, 2) == "a…");
  CHECK(toned("", Tone::bad).empty());
}

TEST_CASE("only terminals with colours get them, at the same places", "[apps]") {
  auto failed = run_called("own", 7, 1.5);
  failed.set("state", "failed");
  failed.set("why", "the loss is not a number any more, whatever was tried about it");
  const auto answer = answer_with({run_called("other", 301, 1.25), failed});
  const auto plain = runs_table(answer, {60}), coloured = runs_table(answer, {60, true});
  CHECK(plain.find('\x1b') == std::string::npos);
  CHECK(coloured.find("\x1b[32mrunning\x1b[m") != std::string::npos);
  CHECK(coloured.find("\x1b[31mfailed\x1b[m") != std::string::npos);
  const auto bare = rows_of(plain), painted = rows_of(coloured);
  REQUIRE(bare.size() == painted.size());
  for (std::size_t i = 0; i < bare.size(); ++i) {
    CHECK(width_of(bare[i]) == width_of(painted[i]));
    CHECK(width_of(bare[i]) <= 60);
  }
  // A reason that fits no line is broken between words.
  CHECK(bare.back() == "      about it");
}

TEST_CASE("columns stay where they are as runs go on", "[apps]") {
  const auto title = [](std::int64_t step, double loss, double speed) {
    const auto answer = answer_with({run_called("own", step, loss)});
    return rows_of(runs_table(answer, {139}, {{"own", speed}}))[0];
  };
  const auto first = title(1, 9.5, 0);
  CHECK(title(20'000, 1.25, 1234.5) == first);
  CHECK(title(999, 12.25, 0.01) == first);
  CHECK(title(999, 12.25, 0.05) == first);
}

}  // namespace
}  // namespace troupe::apps
