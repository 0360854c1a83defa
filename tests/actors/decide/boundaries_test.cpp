// Boundaries: saves, changes, pauses, and ends that are asked for or reached.

#include "deciding_head.h"

using namespace troupe::actors;
using namespace troupe::actors::decide;

namespace {

/// A head whose run has done some steps.
Head head_at(std::int64_t step, Limits limits = {.fewest = 2, .most = 3}) {
  Head head(limits);
  head.run();
  head.run_to(step);
  return head;
}

Row at_boundary(Head& head, std::int64_t step, bool is_last = false, bool is_save_due = false) {
  return head.on(AtBoundary{head.state.attempt, step, is_last, is_save_due});
}

Row collect(Head& head, std::int64_t step) {
  REQUIRE(head.ordered<Collect>());
  CHECK(head.ordered<Collect>()->step == step);
  return head.on(Collected{head.state.attempt, step, true});
}

}  // namespace

TEST_CASE("a save that is due is collected, and training goes on while it is written", "[actors]") {
  auto head = head_at(5);
  CHECK(at_boundary(head, 5, false, true) == Row::save_begins);
  CHECK(collect(head, 5) == Row::save_collected);
  REQUIRE(head.ordered<PlayOn>());
  CHECK(head.ordered<PlayOn>()->step == 5);
  CHECK(head.on(decide::Saved{5}) == Row::saved);
  CHECK(head.answer.orders.empty());
}

TEST_CASE("a boundary at which nothing is due is passed", "[actors]") {
  auto head = head_at(5);
  CHECK(at_boundary(head, 5) == Row::boundary_passed);
  CHECK(head.ordered<PlayOn>()->step == 5);
}

TEST_CASE("a save waits for the one before", "[actors]") {
  auto head = head_at(5);
  at_boundary(head, 5, false, true);
  collect(head, 5);
  head.run_to(6);
  CHECK(at_boundary(head, 6, false, true) == Row::save_waits);
  CHECK(head.answer.orders.empty());
  CHECK(head.on(SaveFailed{5, "the disk is full"}) == Row::save_failed);
  CHECK(collect(head, 6) == Row::save_collected);
}

TEST_CASE("a run whose steps are done ends once the last one is saved", "[actors]") {
  auto head = head_at(8);
  CHECK(at_boundary(head, 8, true, true) == Row::save_begins);
  CHECK(collect(head, 8) == Row::save_collected);
  CHECK_FALSE(head.ordered<End>());
  head.on(decide::Saved{8});
  REQUIRE(head.ordered<End>());
  CHECK(head.ordered<End>()->how == End::How::done);
  CHECK(head.answer.rows == std::vector{Row::saved, Row::run_done});
}

TEST_CASE("a run whose last step cannot be saved has failed", "[actors]") {
  auto head = head_at(8);
  at_boundary(head, 8, true, true);
  collect(head, 8);
  head.on(SaveFailed{8, "the disk is full"});
  REQUIRE(head.ordered<End>());
  CHECK(head.ordered<End>()->how == End::How::failed);
  CHECK(head.ordered<End>()->why == "step 8 was not saved: the disk is full");
  CHECK(head.answer.rows == std::vector{Row::save_failed, Row::run_failed});
}

TEST_CASE("a run that is to stop finishes its rounds, saves, and ends", "[actors]") {
  auto head = head_at(5);
  CHECK(head.on(StopAsked{}) == Row::stop_asked);
  REQUIRE(head.ordered<HoldRounds>());
  CHECK(head.ordered<HoldRounds>()->is_held);
  head.run_to(6);
  CHECK(at_boundary(head, 6) == Row::save_begins);
  collect(head, 6);
  head.on(decide::Saved{6});
  REQUIRE(head.ordered<End>());
  CHECK(head.ordered<End>()->how == End::How::stopped);
  CHECK(head.answer.rows == std::vector{Row::saved, Row::stop_done});
}

TEST_CASE("without players a run stops with the newest checkpoint", "[actors]") {
  Head head;
  head.begin();
  CHECK(head.on(StopAsked{}) == Row::stop_asked);
  CHECK(head.ordered<End>()->how == End::How::stopped);
}

TEST_CASE("a run that loses a node while it stops waits for no other", "[actors]") {
  auto head = head_at(5);
  head.on(StopAsked{});
  head.on(NodeLost{1, "gone"});
  REQUIRE(head.end_attempt() == Row::attempt_ended);
  CHECK(head.ordered<End>()->how == End::How::stopped);
}

TEST_CASE("a run that is to stop at once ends in any phase", "[actors]") {
  auto head = head_at(5);
  head.on(StopAsked{.at_once = true});
  REQUIRE(head.ordered<End>());
  CHECK(head.ordered<End>()->how == End::How::stopped);
  CHECK(head.ordered<End>()->why == "it was ordered to stop at once");
}

TEST_CASE("a paused run waits at the next boundary, and saves what is due there", "[actors]") {
  auto head = head_at(5);
  CHECK(head.on(PauseAsked{true}) == Row::pause_begins);
  CHECK(head.ordered<HoldRounds>()->is_held);
  CHECK(head.on(PauseAsked{true}) == Row::of_the_past);
  at_boundary(head, 5);
  CHECK(head.answer.orders.empty());
  CHECK(head.on(PauseAsked{false}) == Row::pause_over);
  CHECK_FALSE(head.ordered<HoldRounds>()->is_held);
  CHECK(head.ordered<PlayOn>()->step == 5);

  head.on(PauseAsked{true});
  CHECK(at_boundary(head, 5, false, true) == Row::save_begins);
  collect(head, 5);
  CHECK(head.answer.orders.empty());
  head.on(decide::Saved{5});
  CHECK(head.answer.orders.empty());
}

TEST_CASE("a pause that ends before the boundary is told leaves the boundary to its answer",
          "[actors]") {
  auto head = head_at(5);
  head.on(PauseAsked{true});
  head.on(PauseAsked{false});
  CHECK_FALSE(head.ordered<PlayOn>());
  CHECK(at_boundary(head, 5, false, true) == Row::save_begins);
}

TEST_CASE("changes wait for a boundary whose step is saved, and another attempt begins",
          "[actors]") {
  auto head = head_at(5);
  CHECK(head.on(ChangeAsked{}) == Row::boundary_asked);
  CHECK(head.ordered<HoldRounds>()->is_held);
  head.on(ChangeAsked{});
  CHECK(at_boundary(head, 5) == Row::save_begins);
  collect(head, 5);
  CHECK_FALSE(head.ordered<ApplyChanges>());
  head.on(decide::Saved{5});
  CHECK(head.answer.rows == std::vector{Row::saved, Row::change_due});
  REQUIRE(head.ordered<ApplyChanges>());
  CHECK(head.on(ChangesMade{head.state.attempt, 2, true}) == Row::change_made);
  CHECK_FALSE(head.ordered<HoldRounds>()->is_held);
  CHECK_FALSE(head.ordered<EndAttempt>());
  REQUIRE(head.end_attempt() == Row::attempt_ended);
  CHECK(head.ordered<MakePlan>());
  CHECK(head.state.line == 0);
  head.play();
  CHECK(head.state.line == 5);
}

TEST_CASE("a boundary whose changes are refused is passed", "[actors]") {
  auto head = head_at(5);
  head.on(decide::Saved{5});
  head.on(ChangeAsked{});
  CHECK(at_boundary(head, 5) == Row::change_due);
  CHECK(head.on(ChangesMade{head.state.attempt, 1, false}) == Row::change_refused);
  CHECK(head.ordered<PlayOn>()->step == 5);
}

TEST_CASE("a change that comes while others are made waits for the next boundary", "[actors]") {
  auto head = head_at(5);
  head.on(decide::Saved{5});
  head.on(ChangeAsked{});
  at_boundary(head, 5);
  CHECK(head.on(ChangeAsked{}) == Row::boundary_asked);
  CHECK(head.answer.orders.empty());
  // The supervisor may have made both.
  head.on(ChangesMade{head.state.attempt, 2, false});
  CHECK(head.ordered<PlayOn>());
  CHECK(head.state.changes == 0);
}

TEST_CASE("an attempt that ends at a boundary is answered no more", "[actors]") {
  auto head = head_at(5);
  at_boundary(head, 5, false, true);
  head.on(NodeLost{1, "gone"});
  CHECK(head.on(Collected{head.state.attempt, 5, false}) == Row::of_the_past);
  head.end_attempt();
  head.play();
  CHECK(at_boundary(head, 0) == Row::boundary_passed);
}

TEST_CASE("changes are made by an attempt that begins after a loss", "[actors]") {
  auto head = head_at(5);
  head.on(ChangeAsked{});
  head.on(NodeLost{1, "gone"});
  head.end_attempt();
  head.play();
  CHECK(head.state.is_held);
  CHECK(at_boundary(head, 0) == Row::change_due);
}

TEST_CASE("a run ends at once if no attempt can mend its failure", "[actors]") {
  auto head = head_at(5);
  CHECK(head.on(RunFailed{"step 6: the loss is not finite"}) == Row::run_failed);
  CHECK(head.ordered<End>()->how == End::How::failed);
  CHECK(head.ordered<End>()->why == "step 6: the loss is not finite");
}

TEST_CASE("only events of steps need no record", "[actors]") {
  CHECK(is_of_steps(AtBoundary{}));
  CHECK(is_of_steps(StopAsked{}));
  CHECK_FALSE(is_of_steps(NodeLost{}));
  CHECK_FALSE(is_of_steps(AttemptEnded{}));
}
