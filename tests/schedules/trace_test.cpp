#include "schedules/formats/trace.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "catch.h"
#include "core/json.h"
#include "schedules/operators.h"
#include "tables.h"

using namespace troupe;
using namespace troupe::schedules;

namespace {

/// Parses a trace strictly and counts its contents.
class TraceReader {
 public:
  explicit TraceReader(const std::string& text) {
    const auto document = parse_json(text);
    INFO((document ? "" : document.error().text));
    REQUIRE(document.ok());
    const auto* events = document->find("traceEvents");
    REQUIRE(events);
    REQUIRE(events->list());
    for (const auto& event : *events->list()) read(event);
    check_flows();
    check_overlaps();
  }

  std::map<std::string, int> events;            // Counts, keyed by kind.
  std::map<std::int64_t, std::string> devices;  // Names of processes.
  std::map<std::int64_t, std::string> tracks;   // Names of threads.
  std::vector<std::pair<double, double>> levels_of_first;

  std::set<std::string> track_names() const {
    std::set<std::string> names;
    for (const auto& [thread, name] : tracks) names.insert(name);
    return names;
  }

 private:
  struct Slice {
    double start, end;
  };

  static std::int64_t id(const Value& event, const char* key) {
    const auto* value = event.find(key);
    REQUIRE(value);
    REQUIRE(value->integer());
    REQUIRE(*value->integer() >= 0);
    return *value->integer();
  }
  static std::string text(const Value& event, const char* key) {
    const auto* value = event.find(key);
    REQUIRE(value);
    REQUIRE(value->text());
    REQUIRE_FALSE(value->text()->empty());
    return *value->text();
  }
  static double time(const Value& event, const char* key) {
    const auto* value = event.find(key);
    REQUIRE(value);
    REQUIRE(value->is_number());
    REQUIRE(std::isfinite(value->number()));
    REQUIRE(value->number() >= 0);
    return value->number();
  }

  void read(const Value& event) {
    const auto kind = text(event, "ph");
    const auto name = text(event, "name");
    const auto process = id(event, "pid");
    const auto thread = id(event, "tid");
    REQUIRE(process > 0);
    ++events[kind];
    if (kind == "M") {
      const auto* args = event.find("args");
      REQUIRE(args);
      if (name == "process_name") REQUIRE(devices.insert({process, text(*args, "name")}).second);
      if (name == "thread_name") REQUIRE(tracks.insert({thread, text(*args, "name")}).second);
      return;
    }
    REQUIRE(devices.count(process) == 1);
    const double start = time(event, "ts");
    if (kind == "X") {
      REQUIRE(tracks.count(thread) == 1);
      slices_[thread].push_back({start, start + time(event, "dur")});
    } else if (kind == "s" || kind == "f") {
      auto& ends = kind == "s" ? starts_ : ends_;
      REQUIRE(ends.insert({id(event, "id"), {thread, start}}).second);
      if (kind == "f") REQUIRE(text(event, "bp") == "e");
    } else {
      REQUIRE(kind == "C");
      const double bytes = time(*event.find("args"), "bytes");
      if (process == 1) levels_of_first.push_back({start, bytes});
    }
  }

  void check_flows() const {
    REQUIRE(starts_.size() == ends_.size());
    for (const auto& [flow, start] : starts_) {
      REQUIRE(ends_.count(flow) == 1);
      const auto& end = ends_.at(flow);
      CHECK(start.second <= end.second);
      CHECK(inside_a_slice(start.first, start.second));
      CHECK(inside_a_slice(end.first, end.second));
    }
  }

  bool inside_a_slice(std::int64_t thread, double time) const {
    const auto& slices = slices_.at(thread);
    return std::any_of(slices.begin(), slices.end(),
                       [&](const Slice& slice) { return slice.start <= time && time < slice.end; });
  }

  void check_overlaps() {
    for (auto& [thread, slices] : slices_) {
      std::sort(slices.begin(), slices.end(),
                [](const Slice& a, const Slice& b) { return a.start < b.start; });
      for (std::size_t next = 1; next < slices.size(); ++next)
        CHECK(slices[next - 1].end <= slices[next].start + 1e-9 * slices[next].start);
    }
  }

  std::map<std::int64_t, std::vector<Slice>> slices_;                      // Keyed by thread.
  std::map<std::int64_t, std::pair<std::int64_t, double>> starts_, ends_;  // Keyed by flow.
};

std::string trace(const Schedule& schedule, const Costs& costs) {
  return to_trace(timeline_of(schedule, costs, play(schedule, costs)));
}

}  // namespace

TEST_CASE("a trace has processes, tracks, spans, flows and counters", "[schedules]") {
  const auto schedule = with_updates(make("1f1b", 4, 8));
  auto costs = unit_costs(schedule, 0.25);
  for (auto& stage : costs.stages) stage.reduce = 2;
  const TraceReader reader(trace(schedule, costs));
  CHECK(reader.devices == std::map<std::int64_t, std::string>{
                              {1, "device 0"}, {2, "device 1"}, {3, "device 2"}, {4, "device 3"}});
  CHECK(reader.track_names() == std::set<std::string>{"compute", "send", "receive", "reduce"});
  // Passes (4 * 8 F and B), updates (4 A and O), and 3 * 8 messages each way, sent and received.
  CHECK(reader.events.at("X") == 64 + 8 + 2 * 48);
  CHECK(reader.events.at("s") == 48);
  CHECK(reader.events.at("f") == 48);
  CHECK(reader.events.at("C") == 64);
}

TEST_CASE("the counter of a trace follows the activations that a device holds", "[schedules]") {
  const auto schedule = make("1f1b", 2, 3);
  const TraceReader reader(trace(schedule, unit_costs(schedule)));
  // 0F0 0F1 0B0 0F2 0B1 0B2 start at 0, 1, 4, 6, 7 and 10 seconds.
  const double second = 1e6;
  CHECK(reader.levels_of_first == std::vector<std::pair<double, double>>{{0, 1},
                                                                         {1 * second, 2},
                                                                         {6 * second, 1},
                                                                         {6 * second, 2},
                                                                         {9 * second, 1},
                                                                         {12 * second, 0}});
}

TEST_CASE("overlapping spans get separate tracks", "[schedules]") {
  const auto schedule = make("dualpipev", 4, 8);
  // With such long hops, several messages are in transit at once.
  const TraceReader reader(trace(schedule, unit_costs(schedule, 3)));
  CHECK(reader.track_names().count("compute 2") == 1);
  CHECK(reader.track_names().count("send 2") == 1);
}

TEST_CASE("every named schedule gives a valid trace", "[schedules]") {
  for (const auto* name : {"seq", "gpipe", "interleaved-v3", "bfs-v2", "zb-h2", "zb-v", "v-half",
                           "dualpipe", "chimera", "hanayo-w2"}) {
    INFO(name);
    const auto schedule = with_updates(make(name, 4, 8));
    auto costs = unit_costs(schedule, 0.1);
    const TraceReader reader(trace(schedule, costs));
    costs.landing_slots = 1;
    const TraceReader with_slots(trace(schedule, costs));
    CHECK(reader.events.at("X") == with_slots.events.at("X"));
  }
}

TEST_CASE("a measured timeline begins at 0 and keeps its name", "[schedules]") {
  Timeline timeline;
  timeline.name = "run \"7\"\n";
  timeline.devices = 2;
  timeline.spans = {{0, Track::compute, forward(0, 0), -2.5, -1.5},
                    {1, Track::compute, forward(1, 0), -1.0, 0.5}};
  timeline.messages = {{0, 1}};
  const auto text = to_trace(timeline);
  const TraceReader reader(text);
  CHECK(reader.events.at("X") == 2);
  CHECK(text.find(R"("otherData":{"name":"run \"7\"\n"})") != std::string::npos);
  CHECK(text.find(R"("ts":1500000,"dur":1500000,"name":"1F0")") != std::string::npos);
}

TEST_CASE("a message leaves only when it has a slot", "[schedules]") {
  const auto schedule = read(
      "sched 1\nname slots\ndevices 2 stages 2 microbatches 2\nroute 0: 0 1\n"
      "d0: 0F0 0F1 0B0 0B1\n"
      "d1: 1F0 1F1 1B0 1B1\n");
  auto costs = unit_costs(schedule, 2);
  costs.landing_slots = 1;
  const auto timeline = timeline_of(schedule, costs, play(schedule, costs));
  const auto sent = std::find_if(
      timeline.spans.begin(), timeline.spans.end(),
      [](const Span& span) { return span.track == Track::send && span.action == forward(0, 1); });
  REQUIRE(sent != timeline.spans.end());
  CHECK(sent->start == 4);  // 0F1 ends at 2, but 1F0 ends at 4.
  CHECK(sent->end == 6);
}
