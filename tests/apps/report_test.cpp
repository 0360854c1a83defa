#include "apps/program.h"
#include "apps/report/run_events.h"
#include "catch.h"
#include "core/json.h"

using namespace troupe;
using namespace troupe::tests;

namespace {

const std::string report_config = R"(
name = "r"
[model]
kind = "mlp"
dims = [8, 16, 4]
[data]
train = "made:gaussians?dims=8&classes=4"
validate = "made:gaussians?dims=8&classes=4&stream=1"
[batch]
global = 8
micro = 4
[optimizer]
kind = "sgd"
lr = 0.05
[pipeline]
schedule = "pipedream"
stages = 2
[train]
steps = 12
eval_every = 4
)";

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

/// Returns the data that a report holds.
Value data_of(const std::string& html) {
  const std::string begin = "id=\"report\">";
  const auto from = html.find(begin) + begin.size();
  const auto data = parse_json(html.substr(from, html.find("</script>", from) - from));
  REQUIRE(data.ok());
  return *data;
}

std::string events_of(const std::string& run, const std::string& lines) {
  return R"({"type":"run.state","run":")" + run + R"(","state":"running"})" + "\n" + lines;
}

}  // namespace

TEST_CASE("a report of a run is one self-contained page", "[apps]") {
  const Workplace here;
  here.write("run.toml", report_config);
  REQUIRE(tests::troupe(here, {"train", "run.toml"}).code == 0);
  const Ended page = tests::troupe(here, {"report", "r", "--out", "page.html", "--title", "A & B"});
  INFO(page.err);
  REQUIRE(page.code == 0);
  const std::string html = here.read("page.html");
  CHECK(html.starts_with("<!doctype html>"));
  CHECK(html.ends_with("</html>\n"));
  for (const char* part : {"<title>A &amp; B</title>", "default-src 'none'; script-src 'sha256-"}) {
    INFO(part);
    CHECK(contains(html, part));
  }
  for (const char* part : {"@import", "url(", "href=", " src="}) {
    INFO(part);
    CHECK_FALSE(contains(html, part));
  }
  const Value data = data_of(html);
  CHECK(text_of(data, "title") == "A & B");
  const Value& run = data.find("runs")->list()->at(0);
  CHECK(text_of(run, "name") == "r");
  CHECK(text_of(run, "ended") == "done");
  CHECK(integer_in(run, "step") == 12);
  CHECK(integer_in(run, "steps") == 12);
  CHECK(run.find("best_validation")->is_number());
  CHECK(contains(text_of(run, "config"), "schedule = \"pipedream\""));
  const Value& history = *run.find("history");
  CHECK(history.find("rows")->list()->size() == 12);
  CHECK(history.find("evals")->list()->size() >= 1);
  // Both stages told how late their gradients were.
  CHECK(history.find("delays")->list()->size() == 2);
  CHECK(contains(to_json(*history.find("columns")), "\"gap 1\""));
  const Value& about = *run.find("about");
  const std::string facts = to_json(*about.find("facts"));
  // 8 * 16 + 16 + 16 * 4 + 4
  CHECK(contains(facts, R"(["parameters","212"])"));
  CHECK(contains(facts, R"(["model","mlp, dims [8,16,4]"])"));
  CHECK(contains(facts, R"(["plan","pipedream, 2 stages"])"));
  CHECK(integer_in(*about.find("timeline"), "devices") == 2);
  CHECK(about.find("timeline")->find("spans")->list()->size() > 8);
  // The folder's name works like the run's.
  CHECK(tests::troupe(here, {"report", "runs/r", "--title", "A & B"}).out == html);

  const Ended picture = tests::troupe(here, {"report", "r", "--format", "svg"});
  REQUIRE(picture.code == 0);
  CHECK(picture.out.starts_with("<svg xmlns="));
  CHECK(picture.out.ends_with("</svg>\n"));
}

TEST_CASE("a report of a long run is as short as one of a thousand steps", "[apps]") {
  const Workplace here;
  std::filesystem::create_directories(here.path() / "runs/long");
  std::string text = events_of("long", "");
  for (int step = 1; step <= 30'000; ++step)
    text += R"({"type":"step","step":)" + std::to_string(step) + R"(,"loss":2.5,"rate":100})" +
            "\n" +
            (step % 10 == 0 ? R"({"type":"warn","text":"again"})"
                              "\n"
                            : "");
  here.write("runs/long/events.jsonl", text);
  const Ended page = tests::troupe(here, {"report", "long"});
  REQUIRE(page.code == 0);
  CHECK(page.out.size() < 250'000);
  const Value data = data_of(page.out);
  const Value& run = data.find("runs")->list()->at(0);
  CHECK(integer_in(run, "step") == 30'000);
  CHECK(run.find("history")->find("rows")->list()->size() <= 1024);
  CHECK(integer_in(run, "warnings") == 3'000);
}

TEST_CASE("runs of one name have the names of their folders in a report", "[apps]") {
  const Workplace here;
  here.write("run.toml", report_config);
  for (int i = 0; i < 2; ++i) REQUIRE(tests::troupe(here, {"train", "run.toml"}).code == 0);
  const std::string svg = tests::troupe(here, {"report", "r", "runs/r.1", "--format", "svg"}).out;
  CHECK(contains(svg, ">r</text>"));
  CHECK(contains(svg, ">r.1</text>"));
}

TEST_CASE("a report works for a run that was killed within a line", "[apps]") {
  const Workplace here;
  std::filesystem::create_directories(here.path() / "runs/k");
  here.write("runs/k/events.jsonl",
             events_of("k",
                       "{\"type\":\"step\",\"run\":\"k\",\"step\":1,\"loss\":2.5}\n"
                       "{\"type\":\"step\",\"run\":\"k\",\"st"));
  const Ended page = tests::troupe(here, {"report", "k"});
  INFO(page.err);
  REQUIRE(page.code == 0);
  CHECK(contains(page.out, "killed, or still running"));
  CHECK(contains(page.out, "the last line is incomplete"));
}

TEST_CASE("texts in a run's files never become markup", "[apps]") {
  const Workplace here;
  std::filesystem::create_directories(here.path() / "runs/h");
  here.write(
      "runs/h/events.jsonl",
      "{\"type\":\"run.state\",\"run\":\"<script>1\",\"state\":\"failed\","
      "\"why\":\"<script>2\"}\n{\"type\":\"warn\",\"run\":\"h\",\"text\":\"</li><script>3\"}\n"
      "not json <script>4\n{\"type\":\"checkpoint.saved\",\"directory\":\"<script>5\"}\n"
      "{\"type\":\"step\",\"step\":1,\"loss\":1e999}\n"
      "{\"type\":\"step\",\"step\":2,\"loss\":1e308,\"staleness\":[{\"stage\":-1},"
      "{\"stage\":99999999},{\"stage\":0,\"delays\":[1e308,\"x\",-5]},7]}\n"
      "{\"type\":\"step\",\"step\":3,\"loss\":-1e308,\"memory\":\"<script>\"}\n");
  here.write("runs/h/timeline.jsonl", "{\"run\":\"<script>6\",\"devices\":1}\n<script>\n");
  const Ended page = tests::troupe(here, {"report", "h"});
  INFO(page.err);
  REQUIRE(page.code == 0);
  // The page's own scripts are all that there is, and their number is the usual one.
  std::size_t scripts = 0;
  for (auto at = page.out.find("<script"); at != page.out.npos;
       at = page.out.find("<script", at + 1))
    ++scripts;
  CHECK(scripts == 5);
  CHECK_FALSE(contains(page.out, "</li><script"));
  const Value data = data_of(page.out);
  const Value& run = data.find("runs")->list()->at(0);
  CHECK(text_of(run, "name") == "<script>1");
  CHECK(*run.find("notes")->list()->at(0).text() == "first cause: <script>2");
  CHECK(tests::troupe(here, {"report", "h", "--format", "svg", "--title", "\xff<b>"}).code == 0);
}

TEST_CASE("a report of an unknown run says where it looked", "[apps]") {
  const Workplace here;
  const Ended ended = tests::troupe(here, {"report", "none"});
  CHECK(ended.code == 3);
  CHECK(contains(ended.err, "none: there is no such run in runs/, and no such folder"));
}

TEST_CASE("steps that a run repeated count once", "[apps]") {
  std::string text = events_of("a", "");
  const auto step = [](int number, const std::string& loss) {
    return "{\"type\":\"step\",\"step\":" + std::to_string(number) + ",\"loss\":" + loss + "}\n";
  };
  text += step(1, "5") + step(2, "4") + step(3, "3") + events_of("a", "") + step(2, "4") +
          step(3, "2") + step(4, "1") + "{\"type\":\"step\"}\n[1]\n\n";
  const auto run = apps::parse_events(text);
  REQUIRE(run.steps.size() == 4);
  CHECK(run.steps[2].loss == 2.0);
  CHECK(run.starts == 2);
  CHECK(run.unreadable == 3);
  CHECK(run.first_flaw.starts_with("line 9: "));
  CHECK_FALSE(run.is_torn);
}

TEST_CASE("a report lists what was slow, from which step to which", "[apps]") {
  const std::string slow =
      R"({"type":"node.straggler","run":"a","node":"<n>","device":2,"cause":"computing",)";
  const auto run = apps::parse_events(
      events_of("a", slow + R"("step":50,"since":48,"factor":2.5,"share":0.25,"than":"before"})" +
                         "\n" + slow + R"("step":90,"since":48,"why":"it is fast","over":true})" +
                         "\n" + slow + R"("step":120,"since":119,"factor":3,"share":0.5})" + "\n"));
  REQUIRE(run.stragglers.size() == 2);
  CHECK(run.stragglers[0].node == "<n>");
  CHECK(run.stragglers[0].device == 2);
  CHECK(run.stragglers[0].factor == 2.5);
  CHECK(run.stragglers[0].share == 0.25);
  CHECK(run.stragglers[0].since == 48);
  CHECK(run.stragglers[0].until == 90);
  CHECK(run.stragglers[1].since == 119);
  CHECK_FALSE(run.stragglers[1].until);
  CHECK(run.unreadable == 0);
}

TEST_CASE("steps of runs come as comma-separated values", "[apps]") {
  const Workplace here;
  const std::string steps = R"({"type":"step","run":"a","step":1,"loss":3,"lr":0.1})"
                            "\n"
                            R"({"type":"step","run":"a","step":2,"loss":2.5,"rate":100})"
                            "\n"
                            R"({"type":"eval","run":"a","step":2,"loss":2.75})"
                            "\n"
                            R"({"type":"step","run":"a","step":3,"loss":9})"
                            "\n"
                            R"({"type":"step","run":"a","step":3,"loss":2})"
                            "\n";
  for (const auto* run : {"a", "b"})
    std::filesystem::create_directories(here.path() / "runs" / run);
  here.write("runs/a/events.jsonl", events_of("a", steps));
  here.write("runs/b/events.jsonl",
             events_of(R"(b, \"the\" second)", R"({"type":"step","step":1,"loss":1e-9})"
                                               "\n"));
  const Ended csv = tests::troupe(here, {"report", "a", "b", "--format", "csv"});
  INFO(csv.err);
  CHECK(csv.code == 0);
  CHECK(csv.out ==
        "run,step,loss,grad_norm,lr,rate,bubble,memory,validation_loss\r\n"
        "a,1,3,,0.1,,,,\r\n"
        "a,2,2.5,,,100,,,2.75\r\n"
        "a,3,2,,,,,,\r\n"
        "\"b, \"\"the\"\" second\",1,1e-09,,,,,,\r\n");
}
