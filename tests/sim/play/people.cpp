#include <algorithm>
#include <utility>

#include "tests/sim/play/playing.h"

namespace troupe::simulation {
namespace {

using namespace std::chrono_literals;

/// How long a person waits before the run is submitted again. A disk may be full for a minute.
constexpr auto refused_for = 2s;
/// How often a person asks for the state of a run, counted in looks at its events.
constexpr int asks_at_least_every = 10;

}  // namespace

/// A person acts.
void Playing::act(const Fault& fault) {
  Value about_node = Value::Map{};
  about_node.set("node", place_of(fault.machine).machine.name);
  Value about_run = Value::Map{};
  about_run.set("run", runs_[fault.number % runs_.size()].monitor.run());
  const auto ask = [this](const char* type, Value body) {
    cluster_.request(head_machine(), type, std::move(body),
                     [this](const apps::Reply& reply) { check_answer(reply); });
  };
  switch (fault.kind) {
    case Kind::drain:
      ask("node.drain", about_node);
      break;
    case Kind::cordon:
      ask("node.cordon", about_node);
      later(fault, [ask, about_node] { ask("node.uncordon", about_node); });
      break;
    case Kind::pause:
      ask("run.pause", about_run);
      later(fault, [ask, about_run] { ask("run.resume", about_run); });
      break;
    case Kind::stop:
      about_run.set("mode", fault.number % 2 == 0 ? "drain" : "now");
      ask("run.stop", about_run);
      break;
    case Kind::save:
      ask("run.checkpoint", about_run);
      break;
    case Kind::submit:
      resume(runs_[fault.number % runs_.size()], [](const apps::Reply&) {});
      break;
    default:
      break;
  }
}

/// Rule 9: an order of a person does not fail for want of a save, unless a disk is bad.
void Playing::check_answer(const apps::Reply& reply) {
  if (reply || has_bad_disk()) return;
  if (const auto& why = reply.error().text; why.find(" was not saved") != why.npos)
    violate(9, "an order of a person was refused without a drawn reason: " + why);
}

void Playing::uncordon_healthy() {
  for (std::size_t i = 1; i < places_.size(); ++i) {
    if (!scenario_.stays_healthy[i]) continue;
    Value body = Value::Map{};
    body.set("node", places_[i]->machine.name);
    cluster_.request(head_machine(), "node.uncordon", std::move(body));
  }
}

/// Enough machines are healthy, and a person wants the run to end.
void Playing::second_phase() {
  moments_.clear();
  scheduler().note("fault", "the second phase begins");
  bool are_done = true;
  for (auto& run : runs_) are_done &= is_done_until(run, scheduler().now() + 5min);
  if (is_too_long_) return violate(8, "too many events");
  if (are_done) check_rest();
}

/// Lets a run come to its end. Returns whether it is done.
bool Playing::is_done_until(Led& run, Scheduler::Time until) {
  Value standing;
  std::optional<std::string> known;  // The state by its events when a person asked for it.
  auto next_try = scheduler().now();
  for (int looks = 0; scheduler().now() < until && !is_too_long_; ++looks) {
    // A drain may have been ordered only now.
    if (looks % 20 == 0) uncordon_healthy();
    // Its events tell most of it, but a full disk loses some.
    if (looks % asks_at_least_every == 0 || known != run.monitor.state()) {
      known = run.monitor.state();
      standing = cluster_.run(head_machine(), run.monitor.run());
    }
    look();
    const auto state = text_in(standing, "state");
    if (state == "done") break;
    if (state == "paused") {
      Value body = Value::Map{};
      body.set("run", run.monitor.run());
      (void)cluster_.ask(head_machine(), "run.resume", std::move(body));
      known.reset();
    }
    if ((state == "stopped" || state == "failed") && scheduler().now() >= next_try) {
      check_end(run, state, text_in(standing, "why"));
      next_try = scheduler().now() + refused_for;
      known.reset();
      // A person must decide then whether it begins again.
      if (!run.refusal.empty() && run.monitor.lacks_good_checkpoint()) break;
      // Nodes that have the data may come back only now.
      if (++run.again > (scenario_.lacks_data() ? 12 : 3)) break;
      resume(run, [this, &run](const apps::Reply& reply) {
        if (reply) return;
        --run.again;  // The disk may be full for a while.
        scheduler().note("person", "refused: " + reply.error().text);
        run.refusal = reply.error().text;
      });
    }
    advance(200ms);
  }
  if (is_too_long_) return false;
  const bool is_done = text_in(standing, "state") == "done";
  if (!is_done && !run.refusal.empty())
    standing.set("why", "a person cannot resume it: " + run.refusal);
  run.monitor.ended(standing, scenario_.steps);
  return is_done;
}

/// Rule 7: soon nothing of the run is left on nodes that can hear the head.
void Playing::check_rest() {
  std::string left;
  for (const auto until = scheduler().now() + 20s; scheduler().now() < until; advance(100ms))
    if (left = what_is_left(); left.empty()) return;
  violate(7, "the run is done, but " + left);
}

std::string Playing::what_is_left() {
  for (const auto& place : places_) {
    const auto* node = place->newest_node();
    if (!node || !place->has_power || !node->process->is_alive()) continue;
    const auto process = node->process->id();
    const auto here = place->machine.id, head = head_machine().id;
    const auto& wires = cluster_.wires();
    if (scheduler().is_frozen(process) || wires.is_cut(here, head) || wires.is_cut(head, here))
      continue;
    if (wires.places(process) > 0) return place->machine.name + " still waits for other nodes";
  }
  return {};
}

/// Submits the run again. A head begins an ended run anew without `resume`.
void Playing::resume(const Led& run, std::function<void(const apps::Reply&)> then) {
  auto scenario = scenario_;
  scenario.is_impatient = false;
  auto config = config_of(run, scenario);
  config.set("resume", true);
  cluster_.request(head_machine(), "run.submit", std::move(config), std::move(then));
}

/// Rule 9.
void Playing::check_end(Led& run, const std::string& state, const std::string& why) {
  if (state == "stopped" && !is_drawn(Kind::stop))
    run.monitor.violate(9, "the run is stopped, which nobody asked for: " + why);
  // A person must look at a run that fails in the same way on two nodes or again and again.
  const bool may_fail = has_bad_disk() || scenario_.lacks_data() || scenario_.is_impatient ||
                        is_drawn(Kind::failing_jobs) || is_drawn(Kind::kill_again) ||
                        is_drawn(Kind::program_fault);
  if (state == "failed" && !may_fail)
    run.monitor.violate(9, "the run has failed without a drawn reason: " + why);
}

}  // namespace troupe::simulation
