#include "actors/play/recovery_points.h"

#include <string>
#include <vector>

#include "catch.h"

using namespace troupe;
using namespace troupe::actors;
using namespace std::chrono_literals;

namespace {

using Processes = std::vector<std::vector<int>>;

Processes keepers(const std::vector<int>& owners, const std::vector<std::string>& machines,
                  int copies) {
  return keepers_of(owners, machines, copies);
}

}  // namespace

TEST_CASE("copies of a state go to other machines first, then to other processes", "[actors]") {
  const std::vector<std::string> one(4, "a");
  CHECK(keepers({0, 1, 3}, one, 2) == Processes{{0, 1}, {1, 2}, {3, 0}});
  CHECK(keepers({0, 2}, one, 3) == Processes{{0, 1, 2}, {2, 3, 0}});
  CHECK(keepers({0, 3}, {"a", "a", "b", "b"}, 2) == Processes{{0, 2}, {3, 0}});
  CHECK(keepers({0}, {"a", "a", "b", "b"}, 3) == Processes{{0, 2, 1}});
  CHECK(keepers({1}, {"a", "b", "a", "c"}, 3) == Processes{{1, 2, 3}});
  // There are no more copies than processes.
  CHECK(keepers({0, 1}, {"a", "b"}, 8) == Processes{{0, 1}, {1, 0}});
  CHECK(keepers({0}, {"a"}, 2) == Processes{{0}});
}

TEST_CASE("a step becomes the recovery point once all copies exist and the ledger has it",
          "[actors]") {
  RecoveryPoints recovery_points(10, 2, 2, 24h);
  CHECK(recovery_points.line() == 10);
  REQUIRE(recovery_points.may_ask(0s));
  recovery_points.ask(12, 0s);
  CHECK(!recovery_points.may_ask(1h));
  recovery_points.kept(12, 0s);
  recovery_points.entered(12);
  CHECK(recovery_points.line() == 10);
  recovery_points.kept(11, 0s);  // No copy of step 11 was requested.
  CHECK(recovery_points.line() == 10);
  recovery_points.kept(12, 0s);
  CHECK(recovery_points.line() == 12);

  recovery_points.ask(14, 1s);
  recovery_points.kept(14, 0s);
  recovery_points.kept(14, 0s);
  recovery_points.entered(13);
  CHECK(recovery_points.line() == 12);
  CHECK(!recovery_points.may_ask(1h));
  recovery_points.entered(15);
  CHECK(recovery_points.line() == 14);
}

TEST_CASE("a recovery point that an optimizer missed is replaced by a later step", "[actors]") {
  RecoveryPoints recovery_points(0, 2, 2, 24h);
  recovery_points.ask(1, 0s);
  recovery_points.kept(1, 1ms);
  CHECK(recovery_points.missed(1));
  REQUIRE(recovery_points.may_ask(0s));
  recovery_points.ask(3, 0s);
  recovery_points.kept(1, 1ms);
  CHECK(!recovery_points.missed(1));
  CHECK(!recovery_points.may_ask(1h));
  recovery_points.kept(3, 0s);
  recovery_points.kept(3, 0s);
  recovery_points.entered(3);
  CHECK(recovery_points.line() == 3);
}

namespace {

/// Makes a recovery point at this time. Each of two nodes needs 0.1 s for copying and 0.1 s for
/// sending.
void make_line(RecoveryPoints& recovery_points, std::int64_t step, RecoveryPoints::Time now) {
  REQUIRE(recovery_points.may_ask(now));
  recovery_points.ask(step, now);
  recovery_points.entered(step);
  for (int copy = 0; copy < 4; ++copy) recovery_points.kept(step, 50ms);
  REQUIRE(recovery_points.line() == step);
}

}  // namespace

TEST_CASE("recovery points cost 1 % of the time at most", "[actors]") {
  RecoveryPoints recovery_points(0, 4, 2, 24h);
  // The first copy goes to newly allocated memory.
  make_line(recovery_points, 1, 10s);
  make_line(recovery_points, 2, 11s);
  CHECK(!recovery_points.may_ask(11'999ms));
  make_line(recovery_points, 3, 12s);
  CHECK(!recovery_points.may_ask(31'999ms));
  CHECK(recovery_points.may_ask(32s));
}

TEST_CASE("recovery points may cost more if a node is lost every minute", "[actors]") {
  RecoveryPoints recovery_points(0, 4, 2, 60s);
  for (const int step : {1, 2, 3}) make_line(recovery_points, step, std::chrono::seconds(step));
  // The square root of 2 x 0.2 s x 60 s.
  CHECK(!recovery_points.may_ask(7'890ms));
  CHECK(recovery_points.may_ask(7'900ms));
  RecoveryPoints worst(0, 4, 2, 1ms);
  for (const int step : {1, 2, 3}) make_line(worst, step, std::chrono::seconds(step));
  CHECK(!worst.may_ask(3'999ms));
  CHECK(worst.may_ask(4s));
}

TEST_CASE("the rate of losses is estimated from the last losses", "[actors]") {
  LossRate losses;
  losses.lost(1s);
  losses.lost(2s);
  CHECK(losses.between(3s) == 24h);
  losses.lost(61s);
  CHECK(losses.between(61s) == 20s);
  CHECK(losses.between(301s) == 100s);
  for (int at = 400; at < 480; at += 10) losses.lost(std::chrono::seconds(at));
  CHECK(losses.between(480s) == 10s);
}

TEST_CASE("a run without copies never asks for a recovery point", "[actors]") {
  CHECK(!RecoveryPoints().may_ask(1h));
  CHECK(!RecoveryPoints(5, 0, 3, 24h).may_ask(1h));
}
