#include "apps/hosts/host_checks.h"

#include <set>

#include "catch.h"

using namespace troupe;
using namespace troupe::apps;

namespace {

HostReport report(const std::string& host) {
  return {host, "0.1.0", "bf16 where precision is auto", "10.0.0.1", 1.7e9, 4, 400e9, 0.1};
}

}  // namespace

TEST_CASE("a machine's report survives conversion to an event and back", "[hosts]") {
  const auto again = report_from(to_event(report("alpha")));
  REQUIRE(again);
  CHECK(again->version == "0.1.0");
  CHECK(again->address == "10.0.0.1");
  CHECK(again->cores == 4);
  CHECK(again->operations == 400e9);
  CHECK(!report_from(Value::Map{}));
}

TEST_CASE("machines must have equal versions and clocks, and should have equal processors",
          "[hosts]") {
  auto alpha = report("alpha"), beta = report("beta"), gamma = report("gamma");
  CHECK(judge_versions("0.1.0", {alpha, beta}).verdict == Verdict::ok);
  CHECK(judge_clocks({alpha, beta}).verdict == Verdict::ok);
  CHECK(judge_processors({alpha, beta}).verdict == Verdict::ok);
  CHECK(judge_speeds({alpha, beta, gamma}).verdict == Verdict::ok);

  beta.version = "0.0.9";
  const auto versions = judge_versions("0.1.0", {alpha, beta});
  CHECK(versions.verdict == Verdict::fail);
  CHECK(versions.found == "here is troupe 0.1.0, but beta has 0.0.9");

  beta.ahead = -3;
  CHECK(judge_clocks({alpha, beta}).verdict == Verdict::warn);
  CHECK(judge_clocks({alpha, beta}).found == "beta is 3.0 s behind");
  beta.ahead = 365 * 86400.0;
  CHECK(judge_clocks({alpha, beta}).verdict == Verdict::fail);
  CHECK(judge_clocks({alpha, beta}).found == "beta is 365 days ahead");

  beta.determinism = "fp32 where precision is auto";
  CHECK(judge_processors({alpha, beta}).verdict == Verdict::warn);

  beta.operations = 200e9;
  CHECK(judge_speeds({alpha, beta, gamma}).found ==
        "beta reaches 50 % of what most reach on a core");
}

TEST_CASE("a broken link is a failure, and a slow one a warning", "[hosts]") {
  const bench::LinkFigures good{50e-6, 1e9}, slow{60e-6, 0.3e9}, late{900e-6, 1e9};
  const auto checks = judge_links({{"a", "b", good},
                                   {"a", "c", good},
                                   {"a", "d", slow},
                                   {"b", "c", late},
                                   {"b", "d", good},
                                   {"c", "d", Error{"Connection refused"}}});
  REQUIRE(checks.size() == 6);
  CHECK(checks[0].found == "a - b: 50 us, 1.00 GB/s");
  CHECK(checks[0].verdict == Verdict::ok);
  CHECK(checks[2].verdict == Verdict::warn);
  CHECK(checks[3].verdict == Verdict::warn);
  CHECK(checks[5].verdict == Verdict::fail);
  CHECK(checks[5].found == "c - d: Connection refused");
}

TEST_CASE("every pair appears once, and nobody is in two pairs of a round", "[hosts]") {
  for (std::size_t count = 0; count <= 17; ++count) {
    std::set<std::pair<std::size_t, std::size_t>> met;
    const auto rounds = rounds_of_pairs(count);
    CHECK(rounds.size() <= count);
    for (const auto& round : rounds) {
      std::set<std::size_t> here;
      for (const auto& [a, b] : round) {
        CHECK(a < b);
        CHECK(b < count);
        CHECK(here.insert(a).second);
        CHECK(here.insert(b).second);
        CHECK(met.emplace(a, b).second);
      }
    }
    CHECK(met.size() == count * (count - (count > 0)) / 2);
  }
}
