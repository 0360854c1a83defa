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
  const auto narrow = rows_of(runs_table(answer, speeds, 79));
  REQUIRE(narrow.size() == 5);
  for (const auto& row : narrow) CHECK(width_of(row) <= 79);
  CHECK(narrow[0].starts_with("run "));
  CHECK(narrow[0].ends_with("steps/s    left"));
  CHECK(narrow[1].starts_with("a-run-with…-long-name  running "));
  CHECK(narrow[1].ends_with(" 4m"));
  CHECK(narrow[2] == "    alpha: device 0; beta-with-a-longer-name: device 1");
  const auto wide = rows_of(runs_table(answer, speeds, 139));
  REQUIRE(wide.size() == 3);
  CHECK(wide[1].starts_with(name));
  CHECK(wide[1].ends_with("alpha: device 0; beta-with-a-longer-name: device 1"));
  const auto narrower = rows_of(runs_table(answer, speeds, 69));
  CHECK(narrower[0].find("goodput") == std::string::npos);
  CHECK(narrower[0].ends_with("steps/s    left"));
  CHECK(narrower[1].starts_with("a-run-with…long-name  "));
  CHECK(narrower[3].starts_with("own "));
  // Names keep something of their ends, however narrow it is.
  CHECK(rows_of(runs_table(answer, speeds, 10))[1].starts_with("a-ru…ame  running"));
}

TEST_CASE("columns stay where they are as runs go on", "[apps]") {
  const auto title = [](std::int64_t step, double loss, double speed) {
    const auto answer = answer_with({run_called("own", step, loss)});
    return rows_of(runs_table(answer, {{"own", speed}}, 139))[0];
  };
  const auto first = title(1, 9.5, 0);
  CHECK(title(20'000, 1.25, 1234.5) == first);
  CHECK(title(999, 12.25, 0.01) == first);
  CHECK(title(999, 12.25, 0.05) == first);
}

}  // namespace
}  // namespace troupe::apps
