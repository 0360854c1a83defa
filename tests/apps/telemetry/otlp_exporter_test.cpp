#include "apps/telemetry/otlp_exporter.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <vector>

#include "apps/events/event.h"
#include "apps/program.h"
#include "apps/quickstart.h"
#include "apps/telemetry/collector.h"
#include "catch.h"
#include "core/json.h"

using namespace troupe;
using namespace troupe::apps;
using namespace troupe::tests;

namespace {

using namespace std::chrono_literals;

Value told_of(transport::MessageName type, const std::string& run = "r") {
  Value made = event(type, run);
  made.set("time", 1.75e9);
  return made;
}

Value state_of_run(const std::string& state, const std::string& run = "r") {
  Value made = told_of("run.state", run);
  made.set("state", state);
  return made;
}

OtlpOptions options_for(const std::string& address, std::chrono::milliseconds period) {
  return {.collector = *HttpAddress::parse(address, 4318),
          .resource = {otlp::attribute("service.name", "troupe")},
          .period = period,
          .limit = 60s};
}

/// An exporter, and the lines that it says. Read them after it has finished.
struct Exporting {
  std::vector<std::string> lines;
  OtlpExporter exporter;
  explicit Exporting(const OtlpOptions& options)
      : exporter(options, [this](const std::string& line) { lines.push_back(line); }) {}
};

/// Returns what lists of requests to a path hold: resourceNAME[].scopeNAME[].NAME[].
Value::List content_of(const Collector& collector, const std::string& name) {
  const std::string of = name == "spans" ? "Spans" : "Metrics";
  Value::List all;
  for (const auto& request : collector.requests()) {
    if (request.path != (name == "spans" ? "/v1/traces" : "/v1/metrics")) continue;
    for (const auto& resource : *request.body.find("resource" + of)->list())
      for (const auto& scope : *resource.find("scope" + of)->list())
        all.insert(all.end(), scope.find(name)->list()->begin(), scope.find(name)->list()->end());
  }
  return all;
}

std::vector<std::string> names_of(const Value::List& all) {
  std::vector<std::string> names;
  for (const auto& one : all) names.push_back(text_of(one, "name"));
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

bool is_hexadecimal(const std::string& text, std::size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == text.npos;
}

}  // namespace

TEST_CASE("a collector gets the spans and the last numbers of runs", "[apps]") {
  const Collector collector;
  {
    Exporting to(options_for(collector.address(), 1h));
    to.exporter.tell(state_of_run("running"));
    to.exporter.tell(told_of("checkpoint.saved"));
    to.exporter.tell(state_of_run("running", "s"));
    to.exporter.tell(state_of_run("done"));
    to.exporter.finish();
    to.exporter.tell(state_of_run("done", "s"));
    CHECK(to.lines.empty());
  }
  CHECK(names_of(content_of(collector, "spans")) ==
        std::vector<std::string>{"attempt", "run", "save"});
  for (const auto& metric : content_of(collector, "metrics"))
    if (text_of(metric, "name") == "troupe.run.checkpoints") {
      const auto& points = *metric.find("sum")->find("dataPoints")->list();
      REQUIRE(points.size() == 2);
      CHECK(text_of(points[0], "asInt") == "1");
    }
  const auto request = collector.requests().at(0);
  CHECK(to_json(*request.body.find("resourceMetrics")->list()->at(0).find("resource")) ==
        R"({"attributes":[{"key":"service.name","value":{"stringValue":"troupe"}}]})");
}

TEST_CASE("a run that has ended is told once more, and then no more", "[apps]") {
  Collector collector;
  Exporting to(options_for(collector.address(), 1ms));
  to.exporter.tell(state_of_run("running"));
  to.exporter.tell(state_of_run("done"));
  // Another run of that name has a trace of its own.
  while (content_of(collector, "spans").size() < 2) collector.wait();
  Value again = state_of_run("running");
  again.set("time", 1.76e9);
  to.exporter.tell(again);
  again.set("state", "failed");
  to.exporter.tell(again);
  to.exporter.finish();
  const auto spans = content_of(collector, "spans");
  REQUIRE(spans.size() == 4);
  CHECK(text_of(spans[0], "traceId") == text_of(spans[1], "traceId"));
  CHECK(text_of(spans[0], "traceId") != text_of(spans[2], "traceId"));
  CHECK(to.lines.empty());
}

TEST_CASE("a collector that is away costs a warning and what does not fit", "[apps]") {
  std::string address;
  {
    const Collector collector;
    address = collector.address();
  }
  Exporting to(options_for(address, 1ms));
  constexpr auto more = 10;
  for (std::size_t i = 0; i < OtlpExporter::most_spans + more; ++i)
    to.exporter.tell(told_of("checkpoint.saved"));
  to.exporter.finish();
  CHECK(to.lines ==
        std::vector<std::string>{
            "otlp: " + address +
                ": Connection refused; runs do not wait for it, and further problems are counted "
                "at the end",
            "otlp: " + address + " did not take 2058 spans and the last metrics"});
}

TEST_CASE("a collector that is busy gets the same spans again", "[apps]") {
  std::atomic<int> refused = 0;
  Collector collector([&](const Collector::Request& request) {
    if (request.path != "/v1/traces" || ++refused > 2) return Collector::ok();
    return Collector::with_status(refused == 1 ? "429 Too Many Requests"
                                               : "503 Service Unavailable");
  });
  Exporting to(options_for(collector.address(), 1ms));
  to.exporter.tell(told_of("checkpoint.saved"));
  const auto times_sent = [&] { return content_of(collector, "spans").size(); };
  while (times_sent() < 3) collector.wait();
  to.exporter.finish();
  CHECK(times_sent() == 3);
  REQUIRE(to.lines.size() == 1);
  CHECK(to.lines[0].find(": it answered /v1/traces with status 429; runs do not wait") !=
        std::string::npos);
}

TEST_CASE("spans that a collector fails on or rejects are counted", "[apps]") {
  const auto lines_with = [](const std::string& answer) {
    Collector collector([&](const Collector::Request& request) {
      return request.path == "/v1/traces" ? answer : Collector::ok();
    });
    Exporting to(options_for(collector.address(), 1h));
    for (int i = 0; i < 3; ++i) to.exporter.tell(told_of("checkpoint.saved"));
    to.exporter.finish();
    // It is not asked twice.
    CHECK(content_of(collector, "spans").size() == 3);
    REQUIRE(to.lines.size() == 2);
    const auto place = "otlp: " + collector.address();
    CHECK(to.lines[1].starts_with(place + " did not take "));
    return to.lines[0].substr(place.size()) + to.lines[1].substr(place.size());
  };
  const std::string rest =
      "; runs do not wait for it, and further problems are counted at the end did not take ";
  CHECK(lines_with(Collector::with_status("500 Internal Server Error")) ==
        ": it answered /v1/traces with status 500" + rest + "3 spans");
  CHECK(lines_with(Collector::with_status("400 Bad Request")) ==
        ": it answered /v1/traces with status 400" + rest + "3 spans");
  CHECK(lines_with(Collector::with_status(
            "200 OK", R"({"partialSuccess":{"rejectedSpans":"1","errorMessage":"too old"}})")) ==
        ": it rejected 1 spans: too old" + rest + "1 span");
}

TEST_CASE("a collector that hangs is left alone in time", "[apps]") {
  Collector collector([](const Collector::Request&) { return std::string(); });
  auto options = options_for(collector.address(), 1ms);
  options.limit = 100ms;
  Exporting to(options);
  to.exporter.tell(told_of("checkpoint.saved"));
  collector.wait();
  for (int i = 0; i < 4; ++i) to.exporter.tell(told_of("checkpoint.saved"));
  to.exporter.finish();
  CHECK(to.lines ==
        std::vector<std::string>{
            "otlp: " + collector.address() +
                ": it did not answer in time; runs do not wait for it, and further problems are "
                "counted at the end",
            "otlp: " + collector.address() + " did not take 5 spans and the last metrics"});
}

TEST_CASE("troupe train tells a collector of the first run that a person tries", "[apps]") {
  const Workplace here;
  const Collector collector;
  const auto ended = tests::troupe(here, {"train", quickstart, "--otlp", collector.address()});
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  CHECK_FALSE(mentions(ended.err, "otlp:"));
  const auto spans = content_of(collector, "spans");
  CHECK(names_of(spans) == std::vector<std::string>{"attempt", "evaluation", "run", "save"});
  CHECK(spans.size() == 10);  // Four evaluations and four saves.
  std::string root, attempt;
  for (const auto& span : spans) {
    CHECK(is_hexadecimal(text_of(span, "traceId"), 32));
    CHECK(is_hexadecimal(text_of(span, "spanId"), 16));
    CHECK(text_of(span, "traceId") == text_of(spans[0], "traceId"));
    CHECK(std::stoll(text_of(span, "startTimeUnixNano")) > 1'700'000'000'000'000'000);
    CHECK(std::stoll(text_of(span, "endTimeUnixNano")) >=
          std::stoll(text_of(span, "startTimeUnixNano")));
    if (text_of(span, "name") == "run") root = text_of(span, "spanId");
    if (text_of(span, "name") == "attempt") attempt = text_of(span, "spanId");
  }
  for (const auto& span : spans) {
    const auto name = text_of(span, "name");
    CHECK(text_of(span, "parentSpanId") == (name == "run"       ? ""
                                            : name == "attempt" ? root
                                                                : attempt));
    // An evaluation takes time, and so does a save.
    CHECK(text_of(span, "startTimeUnixNano") < text_of(span, "endTimeUnixNano"));
  }
  std::string done, rate;
  for (const auto& metric : content_of(collector, "metrics")) {
    const auto data = [&](const char* kind) {
      return text_of(metric.find(kind)->find("dataPoints")->list()->back(),
                     std::string(kind) == "sum" ? "asInt" : "asDouble");
    };
    if (text_of(metric, "name") == "troupe.run.steps_done") done = data("sum");
    if (text_of(metric, "name") == "troupe.run.rate") rate = data("gauge");
  }
  CHECK(done == "400");
  CHECK(std::stod(rate) > 0);
}

TEST_CASE("the option for a collector names its mistakes, and no key names one", "[apps]") {
  const Workplace here;
  for (const char* command : {"train", "head"}) {
    std::vector<std::string> words = {command, "--otlp", "collector:4318"};
    if (words[0] == "train") words.push_back(quickstart);
    const auto refused = tests::troupe(here, words);
    CHECK(refused.code == 2);
    CHECK(mentions(refused.err,
                   "error: --otlp: found 'collector:4318', wanted an address such as "
                   "http://collector:4318"));
  }
}
