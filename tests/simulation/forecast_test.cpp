#include "simulation/forecast.h"

#include <iostream>

#include "catch.h"

using namespace troupe::simulation;
using namespace std::chrono_literals;

namespace {

/// Returns options with equal hosts: twice as many are twice as fast.
ForecastOptions options_of(int hosts, Duration step, Duration length) {
  ForecastOptions options;
  for (int host = 0; host < hosts; ++host) options.hosts.push_back("h" + std::to_string(host));
  const double slowest = std::chrono::duration<double>(step).count() * hosts;
  options.plan = [slowest](const std::vector<int>& there) {
    HostPlan plan;
    plan.hosts = there;
    plan.rate = static_cast<double>(there.size()) / slowest;
    plan.text = std::to_string(there.size()) + " hosts";
    // A state of 144 MB. `store`: all of it over 10 Gbit/s to disk; `fetch`: a part; `copy`: three.
    plan.store = 280ms;
    plan.fetch = 115ms / static_cast<int>(there.size());
    plan.copy = 117ms / static_cast<int>(there.size());
    return plan;
  };
  options.length = length;
  options.limits.fewest = 2;
  options.limits.most = hosts;
  options.steps = 1'000'000;
  options.limits.start_patience = 5s;
  return options;
}

/// Checks the goodput with copies in memory while hosts come and go.
void check_goodput(ForecastOptions options, double least, int losses) {
  const auto report = forecast(options);
  std::cout << options.trace.size() << " changes, " << options.copies << " copies: goodput "
            << 100 * report.goodput() << " %, " << report.losses << " losses, " << report.steps
            << " steps, " << report.steps_again << " again\n";
  REQUIRE(report.end == "");
  CHECK(report.losses >= losses);
  CHECK(report.goodput() >= least);
}

}  // namespace

TEST_CASE("a forecast without failures has a goodput above 99.5 %", "[simulation]") {
  auto options = options_of(8, 1s, 1h);
  options.save_every = 10;
  const auto report = forecast(options);
  REQUIRE(report.end == "");
  CHECK(report.goodput() > 0.995);
  CHECK(report.recoveries.empty());
  CHECK(report.plans.size() == 1);
  CHECK(report.steps > 3550);
  CHECK(report.mean_nodes == Approx(8).epsilon(0.001));
}

TEST_CASE("a loss costs its detection, its recovery and the steps since the checkpoint",
          "[simulation]") {
  auto options = options_of(8, 1s, 10min);
  options.save_every = 10;
  options.trace = regular_trace(8, 5min, 1h, 10min, 1);
  const auto report = forecast(options);
  REQUIRE(report.end == "");
  REQUIRE(report.recoveries.size() == 1);
  const auto& one = report.recoveries.front();
  CHECK(one.lost == 1);
  CHECK(one.at >= 299s);
  CHECK(one.at <= 331s);
  CHECK(one.detect > 500ms);
  CHECK(one.detect < 800ms);
  CHECK(one.freeze < 20ms);
  CHECK(one.plan < 20ms);
  CHECK(one.prepare > 10ms);
  CHECK(one.prepare < 50ms);
  CHECK(one.load > 10ms);
  CHECK(one.steps_again <= 10);
  CHECK(report.steps_again == one.steps_again);
  // The plan for seven of eight hosts is slower, which does not lower goodput.
  CHECK(report.plans.size() == 2);
  CHECK(report.plans.back().nodes == 7);
  CHECK(report.goodput() > 0.97);
  const double all = report.useful + report.again + report.starting + report.waiting +
                     report.recovering + report.rest;
  CHECK(all == Approx(600).epsilon(0.001));
  CHECK(report.rest >= 0);
}

TEST_CASE("a loss with 30 s notice repeats no step", "[simulation]") {
  auto options = options_of(8, 1s, 10min);
  options.save_every = 50;
  options.trace = regular_trace(8, 5min, 1h, 10min, 1);
  options.notice = 30s;
  const auto report = forecast(options);
  REQUIRE(report.end == "");
  CHECK(report.recoveries.empty());
  CHECK(report.steps_again == 0);
  CHECK(report.plans.back().nodes == 7);
}

TEST_CASE("a run with too few hosts waits and reports the time", "[simulation]") {
  auto options = options_of(2, 1s, 10min);
  options.save_every = 10;
  options.trace = {{0s, Change::What::comes, "a"},
                   {0s, Change::What::comes, "b"},
                   {2min, Change::What::goes, "a"},
                   {7min, Change::What::comes, "c"},
                   {8min, Change::What::comes, "a"}};
  const auto report = forecast(options);
  REQUIRE(report.end == "");
  CHECK(report.waiting == Approx(360).epsilon(0.01));
  CHECK(report.goodput() < 0.41);
  CHECK(report.goodput() > 0.37);
}

TEST_CASE("equal traces give equal forecasts", "[simulation]") {
  auto options = options_of(16, 2s, 2h);
  SpotStatistics statistics;
  statistics.most = 16;
  statistics.live = 12;
  options.trace = spot_trace(statistics, 2h, 5);
  options.save_every = 2;
  const auto once = forecast(options);
  const auto again = forecast(options);
  REQUIRE(once.end == "");
  CHECK(once.steps == again.steps);
  CHECK(once.useful == again.useful);
  CHECK(once.timeline.size() == again.timeline.size());
  CHECK(once.losses > 10);
  CHECK(once.recoveries.size() > 5);
}

TEST_CASE("goodput with copies in memory is at least 98.5 % over 11 hours on spot hosts",
          "[simulation]") {
  // About 24 hosts are present, which need 5 s for a step.
  auto options = options_of(32, 3'750ms, 11h);
  options.trace = spot_trace({}, 11h, 1);
  options.save_every = 120;
  options.copies = 3;
  check_goodput(options, 0.985, 120);
}

TEST_CASE("goodput with copies is at least 99 % if a host is lost every ten minutes",
          "[simulation]") {
  auto options = options_of(32, 3'750ms, 4h);
  options.trace = regular_trace(32, 10min, 5min, 4h, 1);
  options.save_every = 120;
  options.copies = 2;
  check_goodput(options, 0.99, 23);
}

TEST_CASE("goodput with copies is at least 95 % if a host is lost every minute", "[simulation]") {
  auto options = options_of(32, 1s, 1h);
  options.trace = regular_trace(32, 60s, 30s, 1h, 1);
  options.save_every = 600;
  options.copies = 2;
  check_goodput(options, 0.95, 58);
}
