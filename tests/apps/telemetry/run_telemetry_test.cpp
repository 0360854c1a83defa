#include "apps/telemetry/run_telemetry.h"

#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "apps/events/event.h"
#include "catch.h"
#include "core/json.h"

using namespace troupe;
using namespace troupe::apps;

namespace {

constexpr double begin = 1.75e9;

/// An event `after` seconds of the run.
Value at(double after, transport::MessageName type,
         std::initializer_list<std::pair<const char*, Value>> fields = {}) {
  Value made = event(type, "r");
  for (const auto& [key, value] : fields) made.set(key, value);
  made.set("time", begin + after);
  return made;
}

Value step_at(double after, int step) {
  return at(after, "step",
            {{"step", step}, {"loss", 2.5}, {"tokens", 64 * step}, {"seconds", 0.5}});
}

std::string text_at(const otlp::Span& span, const std::string& key) {
  for (const auto& one : span.attributes)
    if (text_of(one, "key") == key) return to_json(*one.find("value"));
  return {};
}

/// Returns "NAME START END", in seconds of the run.
std::string brief_text(const otlp::Span& span) {
  return span.name.data() + std::string(" ") + shortest(span.start - begin) + " " +
         shortest(span.end - begin);
}

std::vector<std::string> brief_texts(const std::vector<otlp::Span>& spans) {
  std::vector<std::string> texts;
  for (const auto& span : spans) texts.push_back(brief_text(span));
  return texts;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("a run with a recovery is a trace of attempts", "[apps]") {
  RunTelemetry run(at(0, "run.state", {{"state", "running"}}));
  run.add(at(0, "run.state", {{"state", "running"}}));
  run.add(at(1, "plan.changed", {{"nodes", Value::List{"alpha", "beta"}}}));
  run.add(step_at(2, 1));
  run.add(step_at(3, 2));
  run.add(at(4, "eval", {{"step", 2}, {"loss", 2.25}, {"seconds", 0.5}}));
  run.add(at(5, "checkpoint.saved", {{"step", 2}, {"directory", "d"}, {"seconds", 0.75}}));
  run.add(step_at(6, 3));
  const auto first = run.take_spans();
  CHECK(brief_texts(first) == Texts{"evaluation 3.5 4", "save 4.25 5"});
  // Beta is lost at second 7, and step 3 is done again.
  run.add(at(8, "plan.changed", {{"nodes", Value::List{"alpha"}}}));
  run.add(step_at(9, 3));
  run.add(at(9.25, "eval", {{"step", 3}, {"loss", 2}, {"seconds", 0.25}}));
  run.add(step_at(10, 4));
  run.add(at(10, "run.recovered",
             {{"why", "beta is lost"},
              {"from", "checkpoint"},
              {"step", 2},
              {"redone", 1},
              {"seconds", 3},
              {"freeze", 0.5},
              {"redo", 1}}));
  const auto second = run.take_spans();
  REQUIRE(brief_texts(second) == Texts{"evaluation 9 9.25", "attempt 0 7", "recovery 7 10"});
  CHECK_FALSE(run.has_ended());
  run.add(at(12, "run.state", {{"state", "done"}}));
  CHECK(run.has_ended());
  const auto last = run.take_spans();
  REQUIRE(brief_texts(last) == Texts{"attempt 8 12", "run 0 12"});

  const auto& root = last[1];
  CHECK(root.parent.empty());
  CHECK(root.trace.size() == 32);
  CHECK(root.outcome == otlp::Span::Outcome::ok);
  CHECK(text_at(root, "troupe.attempts") == R"({"intValue":"2"})");
  const auto& lost = second[1];
  CHECK(lost.outcome == otlp::Span::Outcome::error);
  CHECK(lost.message == "beta is lost");
  CHECK(text_at(lost, "troupe.nodes") ==
        R"({"arrayValue":{"values":[{"stringValue":"alpha"},{"stringValue":"beta"}]}})");
  CHECK(text_at(last[0], "troupe.after_step") == R"({"intValue":"2"})");
  CHECK(text_at(second[2], "troupe.from") == R"({"stringValue":"checkpoint"})");
  CHECK(text_at(second[2], "troupe.freeze_seconds") == R"({"doubleValue":0.5})");
  // Saves and evaluations are below their attempt, attempts and recoveries below the run.
  for (const auto& span : first) CHECK(span.parent == lost.id);
  CHECK(second[0].parent == last[0].id);
  for (const auto* span : {&lost, &second[2], &last[0]}) CHECK(span->parent == root.id);
  std::map<std::string, int> ids;
  for (const auto* spans : {&first, &second, &last})
    for (const auto& span : *spans) {
      CHECK(span.trace == root.trace);
      CHECK(span.id.size() == 16);
      CHECK(++ids[span.id] == 1);
    }
  // The same events give the same ids, and another run of that name has others.
  CHECK(RunTelemetry(at(0, "warn")).take_spans().empty());
  RunTelemetry same(at(0, "warn")), later(at(1, "warn"));
  for (auto* other : {&same, &later}) other->add(at(12, "run.state", {{"state", "failed"}}));
  CHECK(same.take_spans().back().id == root.id);
  CHECK(later.take_spans().back().id != root.id);
}

TEST_CASE("a wish begins an attempt too, and a run without nodes has one", "[apps]") {
  RunTelemetry run(at(0, "run.state", {{"state", "running"}}));
  run.add(at(1, "plan.changed"));
  for (int step = 1; step <= 3; ++step) run.add(step_at(1 + step, step));
  // Placed twice before it plays.
  run.add(at(5, "plan.changed"));
  run.add(at(6, "plan.changed"));
  run.add(step_at(7, 4));
  CHECK(run.take_spans().empty());
  run.add(step_at(8, 5));
  CHECK(brief_texts(run.take_spans()) == Texts{"attempt 0 5"});
  run.add(at(9, "plan.changed"));
  run.add(at(10, "run.state", {{"state", "failed"}, {"why", "no nodes"}}));
  const auto spans = run.take_spans();
  REQUIRE(brief_texts(spans) == Texts{"attempt 5 9", "attempt 9 10", "run 0 10"});
  CHECK(spans[2].message == "no nodes");

  RunTelemetry local(at(0, "run.state", {{"state", "running"}}));
  local.add(step_at(1, 1));
  local.add(at(2, "run.recovered", {{"step", 0}, {"redone", 1}, {"seconds", 0.75}, {"redo", 0.5}}));
  local.add(at(3, "run.state", {{"state", "stopped"}}));
  CHECK(brief_texts(local.take_spans()) ==
        Texts{"attempt 0 1.25", "recovery 1.25 2", "attempt 1.5 3", "run 0 3"});
}

TEST_CASE("a run's numbers are OTLP metrics", "[apps]") {
  RunTelemetry run(at(0, "run.state", {{"state", "running"}}));
  run.add(step_at(1, 1));
  run.add(step_at(2, 2));
  otlp::Metrics metrics(1'750'000'003'000'000'000);
  run.tell(metrics);
  RunTelemetry other(at(0, "warn"));
  other.tell(metrics);
  std::map<std::string, Value> found;
  for (const auto& metric : metrics.take()) found[text_of(metric, "name")] = metric;
  CHECK(to_json(found.at("troupe.run.loss")) ==
        R"({"name":"troupe.run.loss","description":"Loss of the last step.","unit":"",)"
        R"("gauge":{"dataPoints":[{"attributes":[{"key":"run","value":{"stringValue":"r"}}],)"
        R"("timeUnixNano":"1750000003000000000","asDouble":2.5}]}})");
  const auto& seen = *found.at("troupe.run.seen").find("sum");
  CHECK(to_json(seen) ==
        R"({"dataPoints":[{"attributes":[{"key":"run","value":{"stringValue":"r"}}],)"
        R"("startTimeUnixNano":"1750000000000000000","timeUnixNano":"1750000003000000000",)"
        R"("asInt":"128"},{"attributes":[{"key":"run","value":{"stringValue":"r"}}],)"
        R"("startTimeUnixNano":"1750000000000000000","timeUnixNano":"1750000003000000000",)"
        R"("asInt":"0"}],"aggregationTemporality":2,"isMonotonic":true})");
  const auto& seconds = *found.at("troupe.run.step_seconds").find("histogram");
  CHECK(to_json(*seconds.find("aggregationTemporality")) == "2");
  const auto& point = seconds.find("dataPoints")->list()->at(0);
  CHECK(text_of(point, "count") == "2");
  CHECK(number_in(point, "sum") == 1);
  CHECK(point.find("bucketCounts")->list()->size() ==
        point.find("explicitBounds")->list()->size() + 1);
  CHECK(to_json(*point.find("bucketCounts")) ==
        R"(["0","0","0","0","0","0","0","0","2","0","0","0","0","0","0","0","0"])");
  // A number that is not known has no point.
  CHECK_FALSE(found.contains("troupe.run.rate"));
  CHECK(found.at("troupe.run.loss").find("gauge")->find("dataPoints")->list()->size() == 1);
}
