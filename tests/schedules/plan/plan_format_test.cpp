#include "schedules/plan/plan_format.h"

#include <string>

#include "catch.h"
#include "core/value.h"
#include "small_plans.h"

using namespace troupe;
using namespace troupe::schedules;
using namespace troupe::schedules::testing;

TEST_CASE("plans and outlooks print as tables", "[schedules]") {
  const PlanRequest request = two_stages();
  const Plan plan = planned(request);
  CHECK(to_table(request, plan) == R"(1f1b, 2 stages, 1 replica, 2 devices, 4 micro-batches a step

stage  units  layers              devices  weights  gradients  optimizer  activations  buffers  total      of  forward  backward
    0   0..1  block 0 .. block 1  node0:0     40 B       20 B       40 B         20 B      9 B  129 B  1000 B   2.00 s    4.00 s
    1   2..3  block 2 .. block 3  node1:0     40 B       20 B       40 B         10 B      9 B  119 B  1000 B   2.00 s    4.00 s

step 30.0 s, bubble 20.0 %; steps back to back 30.0 s, bubble 20.0 %
0.133 micro-batches a second
traffic in a step: 24 B between stages, 0 B for sums of gradients
)");
  CHECK(
      to_table(plan, outlooks(request)) ==
      R"(if                              the run                              stages  replicas    step     rate  because
node1 fails                     continues with new stage boundaries       1         1  48.0 s   62.5 %  stages = 2 with chunks = 1 and replicas = 1 need 2 devices, and the cluster has 1; use fewer stages or replicas, or more chunks
node0 and node1 fail            waits                                     -         -       -        -  no node is left
another node like node0 joins   continues                                 2         1  30.0 s  100.0 %
two more nodes like node0 join  continues                                 2         1  30.0 s  100.0 %
)");
}

TEST_CASE("columns that do not fit follow in blocks that repeat the first column", "[schedules]") {
  TextTable table({"stage", "devices", "weights", "optimizer"});
  table.add({"0", "node0:0", "40 B", "8 B"});
  table.add({"1", "node1:0", "4 B", "16 B"});
  CHECK(table.text(23) ==
        "stage  devices  weights\n"
        "    0  node0:0     40 B\n"
        "    1  node1:0      4 B\n"
        "\n"
        "stage  optimizer\n"
        "    0        8 B\n"
        "    1       16 B\n");
  CHECK(table.text(22).find("stage  weights\n") != std::string::npos);
  CHECK(table.text(1).find("stage  optimizer\n") != std::string::npos);
}

TEST_CASE("explain prints the formula of every number", "[schedules]") {
  PlanRequest request = two_stages();
  request.units[0].workspace = 50;
  request.units.front().tied = {TiedParameters{"table", 7, 7}};
  request.units.back().tied = {TiedParameters{"table", 7, 7}};
  const std::string text = explain(request, planned(request));
  const auto tells = [&](const std::string& line) {
    INFO(text);
    CHECK(text.find(line) != std::string::npos);
  };
  tells("weights = 2 versions (1 in use, 1 in the making) x 20 B = 40 B");
  tells(
      "weights = 2 versions (1 in use, 1 in the making) x 20 B + second copies of tied parameters "
      "14 B = 54 B");
  tells("optimizer = state of its parameters 40 B = 40 B");
  tells("at most 2 micro-batches in flight, of 10 B each = 20 B");
  tells(
      "buffers = 3 slots (2 landing, 1 outgoing) x 3 B for its boundaries with other devices + "
      "the largest workspace of a pass or an update 45 B = 54 B");
  tells("bubble = 1 - busy / (2 devices x step) = 20.0 %");
}

TEST_CASE("sizes and times print with three digits", "[schedules]") {
  CHECK(show(Bytes{1000}) == "1000 B");
  CHECK(show(Bytes{3} << 29) == "1.50 GiB");
  CHECK(show(Bytes{12'345'678}) == "11.8 MiB");
  CHECK(show(Seconds(0)) == "0 s");
  CHECK(show(Seconds(0.01234)) == "12.3 ms");
  CHECK(show(Seconds(1.5e-5)) == "15.0 us");
  CHECK(show(Seconds(1234)) == "1234 s");
  CHECK(percent(0.1124) == "11.2 %");
}

TEST_CASE("the JSON value of a plan has the numbers of its table", "[schedules]") {
  const PlanRequest request = two_stages();
  const Plan plan = planned(request);
  const Value tree = to_value(request, plan);
  CHECK(tree.find("step_seconds")->number() == 30);
  CHECK(*tree.find("devices")->integer() == 2);
  const Value& seat = tree.find("seats")->list()->front();
  CHECK(*seat.find("bytes")->find("total")->integer() == 129);
  CHECK(*seat.find("devices")->list()->front().text() == "node0:0");
  CHECK(tree.find("stages")->list()->size() == 2);
  const Value after = to_value(plan, outlooks(request));
  CHECK(after.list()->front().find("plan")->find("rate_ratio")->number() == Approx(0.625));
  CHECK(*(*after.list())[1].find("reason")->text() == "no node is left");
}
