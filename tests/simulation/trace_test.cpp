#include "simulation/trace.h"

#include <map>
#include <set>

#include "catch.h"

using namespace troupe;
using namespace troupe::simulation;
using namespace std::chrono_literals;

namespace {

using What = Change::What;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

/// Returns the average number of live nodes.
double mean_live(const FailureTrace& trace, Duration length) {
  double sum = 0, live = 0;
  Duration at{};
  for (const auto& change : trace) {
    sum += live * std::chrono::duration<double>(change.at - at).count();
    at = change.at;
    live += change.what == What::comes ? 1 : -1;
  }
  sum += live * std::chrono::duration<double>(length - at).count();
  return sum / std::chrono::duration<double>(length).count();
}

}  // namespace

TEST_CASE("a Bamboo trace is read line by line", "[simulation]") {
  const auto trace =
      read_trace("0,add,node1\n0,add,node2\r\n60000,remove,node1\n\n120000,add,node1");
  REQUIRE(trace);
  CHECK(*trace == FailureTrace{{0s, What::comes, "node1"},
                               {0s, What::comes, "node2"},
                               {60s, What::goes, "node1"},
                               {120s, What::comes, "node1"}});
}

TEST_CASE("a SkyPilot trace lists the number of instances", "[simulation]") {
  const auto trace = read_trace(R"({"metadata": {"gap_seconds": 600}, "data": [2, 2, 1, 3]})");
  REQUIRE(trace);
  CHECK(*trace == FailureTrace{{0s, What::comes, "node0"},
                               {0s, What::comes, "node1"},
                               {1200s, What::goes, "node1"},
                               {1800s, What::comes, "node1"},
                               {1800s, What::comes, "node2"}});
}

TEST_CASE("an error in a trace names its place", "[simulation]") {
  const auto why = [](const std::string& text) {
    const auto trace = read_trace(text);
    return trace ? std::string("it was read") : trace.error().text;
  };
  CHECK(contains(why(""), "1: it is empty"));
  CHECK(contains(why("0,add,a\nx,add,b"), "2: \"x\" is no time"));
  CHECK(contains(why("0,add"), "1: wanted milliseconds,add or remove,node"));
  CHECK(contains(why("0,adds,a"), "\"adds\": wanted add or remove"));
  CHECK(contains(why("-5,add,a"), "is no time"));
  CHECK(contains(why("99999999999999999,add,a"), "is no time"));
  CHECK(contains(why("0,add,a\n1,add,a"), "2: a is there already"));
  CHECK(contains(why("0,remove,a"), "1: a is not there"));
  CHECK(contains(why("{"), "1:"));
  CHECK(contains(why(R"({"metadata": {"gap_seconds": 0}, "data": []})"), "gap_seconds"));
  CHECK(contains(why(R"({"metadata": {"gap_seconds": 1}, "data": [1, -1]})"),
                 "1:46: wanted how many"));
  CHECK(contains(why(R"({"metadata": {"gap_seconds": 1}, "data": [1e9]})"), "wanted how many"));
}

TEST_CASE("a spot trace has the requested statistics", "[simulation]") {
  const SpotStatistics statistics;
  const Duration length = 200h;
  for (const std::uint64_t seed : {1, 2, 3}) {
    const auto trace = spot_trace(statistics, length, seed);
    CHECK(trace == spot_trace(statistics, length, seed));
    std::set<std::string> there;
    std::map<Duration, int> moments;
    int losses = 0;
    for (const auto& change : trace) {
      if (change.what == What::comes) {
        REQUIRE(there.insert(change.node).second);
      } else {
        REQUIRE(there.erase(change.node) == 1);
        ++losses;
        ++moments[change.at];
      }
      REQUIRE(std::ssize(there) <= statistics.most);
    }
    int most = 0;
    for (const auto& [at, count] : moments) most = std::max(most, count);
    INFO("seed " << seed);
    CHECK(losses / 200.0 == Approx(statistics.losses).epsilon(0.15));
    CHECK(std::ssize(moments) / 200.0 == Approx(statistics.moments).epsilon(0.15));
    CHECK(most == statistics.most_at_once);
    CHECK(mean_live(trace, length) == Approx(statistics.live).epsilon(0.1));
  }
  CHECK(spot_trace(statistics, length, 1) != spot_trace(statistics, length, 2));
}

TEST_CASE("a generated trace reads back equal", "[simulation]") {
  const auto spot = spot_trace({}, 11h, 1);
  const auto read = read_trace(write_bamboo_trace(spot));
  REQUIRE(read);
  CHECK(*read == spot);
  const auto regular = regular_trace(8, 60s, 30s, 1h, 1);
  CHECK(*read_trace(write_bamboo_trace(regular)) == regular);
}

TEST_CASE("regular failures occur once per interval", "[simulation]") {
  const auto trace = regular_trace(4, 60s, 30s, 10min, 1);
  int goes = 0;
  for (const auto& change : trace) {
    if (change.what != What::goes) continue;
    ++goes;
    CHECK(change.at >= goes * 60s);
    CHECK(change.at <= goes * 60s + 6s);
  }
  CHECK(goes == 9);
}
