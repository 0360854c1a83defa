// Plans depend on links, and on the fixed cost of passes.

#include <algorithm>

#include "catch.h"
#include "schedules/plan/plan.h"
#include "small_plans.h"

using namespace troupe;
using namespace troupe::schedules;
using namespace troupe::schedules::testing;

namespace {

/// Returns a request of eight blocks on two devices, whose plan is open.
PlanRequest open_request() {
  PlanRequest request = two_stages();
  for (int u = 4; u < 8; ++u) request.units.push_back(block(u));
  request.stages.reset();
  request.replicas.reset();
  request.schedule = "auto";
  request.effort = 0;
  return request;
}

void link_all(PlanRequest& request, const Link& link) {
  for (auto& node : request.cluster.nodes) node.outside = link;
}

}  // namespace

TEST_CASE("each pass of a plan has a fixed cost", "[schedules]") {
  PlanRequest request = two_stages();
  request.pass = Seconds(0.5);
  // Five forward and five backward passes follow each other.
  CHECK(planned(request).step == Seconds((4 + 2 - 1) * (2 + 4 + 2 * 0.5) + 0.5));
}

TEST_CASE("the end of each step has a fixed cost", "[schedules]") {
  PlanRequest request = two_stages();
  request.hand_over = Seconds(0.25);
  const Plan plan = planned(request);
  CHECK(plan.step == Seconds((4 + 2 - 1) * (2 + 4) + 0.25));
  CHECK(explain(request, plan).find(" and 250 ms for the end of the step = ") != std::string::npos);
}

TEST_CASE("chunks pay for their passes", "[schedules]") {
  PlanRequest request = open_request();
  request.replicas = 1;
  const auto step = [&](const char* schedule) {
    request.schedule = schedule;
    return planned(request).step;
  };
  CHECK(step("interleaved-v2") < step("1f1b"));
  request.pass = Seconds(2);
  CHECK(step("interleaved-v2") > step("1f1b"));
}

TEST_CASE("messages in one direction share a connection", "[schedules]") {
  PlanRequest request = two_stages();
  link_all(request, {.latency = 1, .bandwidth = 0.1});
  // A message of 3 bytes takes 30 seconds and arrives after 31. The first micro-batch passes both
  // stages and both hops. The messages of the other three follow. At the end, the optimizers
  // exchange norms.
  CHECK(planned(request).step == Seconds(2 * (2 + 4) + 2 * 31 + 3 * 30 + 1));
}

TEST_CASE("a replica less may be faster over slow links", "[schedules]") {
  PlanRequest request = open_request();
  CHECK(planned(request).devices() == 2);
  link_all(request, {.latency = 0.01, .bandwidth = 0.1});
  const Plan plan = planned(request);
  CHECK(plan.devices() == 1);
  CHECK(plan.step == Seconds(4 * 8 * 3));
}

TEST_CASE("one device alone is among the compared plans, however many layouts there are",
          "[schedules]") {
  PlanRequest request = open_request();
  for (int n = 0; n < 6; ++n) request.cluster.nodes.push_back(request.cluster.nodes.front());
  const auto plans = candidate_plans(request);
  REQUIRE(plans);
  CHECK(plans->front().devices() > 1);
  CHECK(std::ranges::count(*plans, 1, &Plan::devices) > 0);
}

TEST_CASE("the slowest of the measured links between its nodes slows a plan", "[schedules]") {
  PlanRequest request = open_request();
  request.cluster.nodes[0].zone = "a";
  request.cluster.nodes[1].zone = "b";
  request.cluster.measured[{"a", "b"}] = {.latency = 0.01, .bandwidth = 0.1};
  CHECK(planned(request).devices() == 1);
  // The nodes' own links count only if nothing was measured.
  link_all(request, {.latency = 0.01, .bandwidth = 0.1});
  request.cluster.measured[{"a", "b"}] = {};
  CHECK(planned(request).devices() == 2);
}

TEST_CASE("of plans whose forecasts are alike the simplest is chosen", "[schedules]") {
  PlanRequest request = open_request();
  request.replicas = 1;
  const Plan fastest = planned(request);
  CHECK(fastest.devices() == 2);
  const double longer = Seconds(4 * 8 * 3) / fastest.step - 1;
  request.alike = 0.9 * longer;
  CHECK(planned(request).devices() == 2);
  request.alike = 1.1 * longer;
  const Plan simple = planned(request);
  CHECK(simple.devices() == 1);
  CHECK(simple.stages.size() == 1);
}

TEST_CASE("of equally fast plans the one that needs least memory is chosen", "[schedules]") {
  PlanRequest request = open_request();
  request.cluster.nodes.resize(1);
  // Sums that are added up in another order differ in their last bits.
  for (int pass = 1; pass <= 50; ++pass) {
    request.pass = Seconds(pass * 1e-5);
    for (const auto objective : {Objective::makespan, Objective::period}) {
      request.objective = objective;
      const auto plans = candidate_plans(request);
      REQUIRE(plans);
      const auto& best = plans->front();
      INFO(best.schedule << " with " << pass);
      const auto needs_more = [&](const Plan& other) {
        return other.memory_at(0) > best.memory_at(0);
      };
      CHECK(std::ranges::any_of(*plans, needs_more));
      CHECK(std::ranges::none_of(*plans, [&](const Plan& other) {
        return other.stages.size() == best.stages.size() && other.step < best.step * 1.0001 &&
               other.memory_at(0) < best.memory_at(0);
      }));
    }
  }
}
