#include <string>

#include "apps/page/history_file.h"
#include "catch.h"
#include "core/json.h"
#include "storage/files/memory_files.h"

using namespace troupe;
using namespace troupe::apps;
using namespace troupe::storage;

namespace {

const std::string path = "runs/r/events.jsonl";
constexpr int all_pages = 1'000'000;

void append(MemoryFiles& files, const std::string& text) {
  if (!*files.exists("runs/r")) REQUIRE(files.make_directory("runs/r"));
  auto file = files.append(path);
  REQUIRE(file);
  REQUIRE((*file)->write(std::as_bytes(std::span(text.data(), text.size()))));
}

std::string step(int number, double loss) {
  return R"({"type":"step","run":"r","step":)" + std::to_string(number) + R"(,"loss":)" +
         shortest(loss) + R"(,"tokens":)" + std::to_string(10 * number) + R"(,"time":)" +
         std::to_string(100 + number) + "}\n";
}

/// Returns a row's value by the name of its column.
Value cell(const Value& history, std::size_t row, std::string_view column) {
  const auto& columns = *history.find("columns")->list();
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (*columns[i].text() == column) return history.find("rows")->list()->at(row).list()->at(i);
  FAIL("there is no column " << column);
  return {};
}

Value value_of(HistoryFile& history) {
  const auto value = parse_json(history.json());
  REQUIRE(value);
  return *value;
}

std::size_t rows_of(const Value& history) { return history.find("rows")->list()->size(); }

}  // namespace

TEST_CASE("a run's history grows with its events", "[apps]") {
  MemoryFiles files;
  HistoryFile history(files, path);
  CHECK(history.read_on(1));
  CHECK(rows_of(value_of(history)) == 0);
  CHECK(*value_of(history).find("whole")->boolean());
  append(files, step(1, 3) + step(2, 2.5));
  CHECK(history.read_on(all_pages));
  append(files, step(3, 2) + R"({"type":"eval","run":"r","step":3,"loss":2.25,"time":104})" + "\n");
  CHECK(history.read_on(all_pages));
  const auto value = value_of(history);
  REQUIRE(rows_of(value) == 3);
  CHECK(cell(value, 2, "step").number() == 3);
  CHECK(cell(value, 2, "loss").number() == 2.0);
  CHECK(cell(value, 2, "seen").number() == 30.0);
  CHECK(cell(value, 2, "time").number() == 103.0);
  // A value that no event told is absent.
  CHECK(cell(value, 2, "rate").is_null());
  CHECK(to_json(*value.find("evals")) == "[[3,104,2.25]]");
  const auto& told = *value.find("told")->list();
  REQUIRE(told.size() == 1);
  CHECK(text_of(told[0], "text") == "step 3  validation loss 2.2500");
}

TEST_CASE("steps that a run repeats replace those from before in its history", "[apps]") {
  MemoryFiles files;
  append(files, step(1, 5) + step(2, 4) + step(3, 9) + step(2, 3));
  HistoryFile history(files, path);
  history.read_on(all_pages);
  REQUIRE(rows_of(value_of(history)) == 2);
  CHECK(cell(value_of(history), 1, "loss").number() == 3.0);
  append(files, step(3, 2));
  history.read_on(all_pages);
  REQUIRE(rows_of(value_of(history)) == 3);
  CHECK(cell(value_of(history), 2, "loss").number() == 2.0);
}

TEST_CASE("a long history keeps its length, and the means of its steps", "[apps]") {
  MemoryFiles files;
  constexpr int steps = 10'000;
  std::string text;
  double sum = 0;
  for (int i = 1; i <= steps; ++i) {
    text += step(i, i % 7);
    sum += i % 7;
    if (i % 20 == 0)
      text += R"({"type":"warn","run":"r","text":"number )" + std::to_string(i) + "\"}\n";
  }
  append(files, text);
  HistoryFile history(files, path);
  // It reads some pages at once, so that other questions are answered meanwhile.
  CHECK_FALSE(history.read_on(2));
  CHECK_FALSE(*value_of(history).find("whole")->boolean());
  CHECK(history.read_on(all_pages));
  const auto value = value_of(history);
  REQUIRE(rows_of(value) <= RunHistory::most_rows);
  REQUIRE(rows_of(value) > RunHistory::most_rows / 2 - 1);
  CHECK(cell(value, rows_of(value) - 1, "step") == Value(steps));
  // All rows but the last have as many steps.
  double mean = 0;
  std::int64_t before = 0;
  for (std::size_t row = 0; row < rows_of(value); ++row) {
    const auto last = *cell(value, row, "step").integer();
    mean += cell(value, row, "loss").number() * static_cast<double>(last - before);
    CHECK((last - before == 16 || last == steps));
    before = last;
  }
  CHECK(mean == Approx(sum));
  const auto& told = *value.find("told")->list();
  REQUIRE(told.size() == RunHistory::most_told);
  CHECK(text_of(told.back(), "text") == "warning: number 10000");
  CHECK(integer_in(told.back(), "step") == steps);
}

TEST_CASE("a history skips lines that are no events", "[apps]") {
  MemoryFiles files;
  const std::string long_text(2'000, 'x');
  append(files, "{\"type\":\"step\",\"st\n" + step(1, 3) + "[1]\n\n" +
                    R"({"type":"step","step":"x"})" + "\n" + R"({"type":"warn","text":")" +
                    long_text + "\"}\n" + R"({"type":"step","run":"r","step":2,"loss":1)");
  HistoryFile history(files, path);
  CHECK(history.read_on(all_pages));
  CHECK(rows_of(value_of(history)) == 1);
  const auto value = value_of(history);
  const auto& told = *value.find("told")->list();
  REQUIRE(told.size() == 1);
  CHECK(text_of(told[0], "text").size() < 600);
  // The rest of the last line comes later.
  append(files, "}\n");
  history.read_on(all_pages);
  CHECK(rows_of(value_of(history)) == 2);
}

TEST_CASE("a history has how late the gradients of each stage were", "[apps]") {
  MemoryFiles files;
  const auto late = [](int number, const std::string& stages) {
    return R"({"type":"step","run":"r","step":)" + std::to_string(number) + R"(,"time":)" +
           std::to_string(number) + R"(,"staleness":[)" + stages + "]}\n";
  };
  append(files, late(1, R"({"stage":0,"delays":[0,2],"gap":3},{"stage":1,"delays":[2]})") +
                    late(2, R"({"stage":0,"delays":[1,1],"gap":5},{"stage":-1,"gap":1},7)") +
                    late(2, R"({"stage":0,"delays":[0,4,"x"],"gap":1})"));
  HistoryFile history(files, path);
  history.read_on(all_pages);
  const auto value = value_of(history);
  CHECK(cell(value, 0, "gap 0").number() == 3.0);
  CHECK(cell(value, 1, "gap 0").number() == 1.0);
  CHECK(cell(value, 0, "gap 1").is_null());
  // The second step was done again: the first try does not count.
  CHECK(to_json(*value.find("delays")) == "[[0,[0,6,0]],[1,[2]]]");
  CHECK(number_in(value, "begun") == 1);
  CHECK(number_in(value, "newest") == 2);
  // A stage that is told of later has columns in the rows from before, too.
  append(files, late(3, R"({"stage":2,"gap":7})"));
  history.read_on(all_pages);
  const auto later = value_of(history);
  CHECK(cell(later, 0, "gap 0").number() == 3.0);
  CHECK(cell(later, 0, "gap 2").is_null());
  CHECK(cell(later, 2, "gap 2").number() == 7.0);
}
