#include "actors/lead/run_driver.h"

#include <utility>
#include <variant>

namespace troupe::actors {
namespace {

constexpr auto write_again = std::chrono::milliseconds(500);

}  // namespace

RunDriver::RunDriver(Env& env, Loop& loop, Hooks hooks)
    : env_(env), loop_(loop), hooks_(std::move(hooks)) {}

void RunDriver::take(decide::Event event) {
  post([this, event = std::move(event)] { hear(event); });
}

void RunDriver::after(Duration time, std::function<void()> what) {
  loop_.after(time, std::move(what));
}

RunDriver::State RunDriver::state() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

void RunDriver::rest(const std::vector<decide::Record>& last) {
  const std::lock_guard lock(writing_);
  // If writing fails, the next head waits in vain for the nodes that played.
  if (!std::exchange(rests_, true) && !last.empty()) (void)hooks_.write(last);
}

/// Events of steps are answered at once, also while others wait: training goes on.
void RunDriver::hear(decide::Event event) {
  if (decide::is_of_steps(event)) return void(answer(event));
  events_.add(std::move(event));
  if (!is_held_up_) answer_all();
}

/// Answers the waiting events in order. If one cannot be written down, later ones wait too.
void RunDriver::answer_all() {
  for (; !events_.is_empty(); events_.pop_front()) {
    if (answer(events_.front())) continue;
    is_held_up_ = true;
    after(write_again, [this] {
      is_held_up_ = false;
      answer_all();
    });
    return;
  }
}

Status RunDriver::answer(const decide::Event& event) {
  const auto limits = hooks_.limits(state_);
  const auto now = env_.now();
  auto decided = decide::react(state_, event, now, limits);
  Status written = Done{};
  {
    const std::lock_guard lock(writing_);
    if (rests_) return written;
    if (!decided.records.empty()) written = hooks_.write(decided.records);
  }
  if (written && !decided.records.empty()) env_.point("record_written");
  accept(written ? std::move(decided)
                 : decide::react(state_, decide::JournalFailed{written.error().text}, now, limits));
  return written;
}

void RunDriver::accept(decide::Answer answer) {
  {
    // The state of a run among thousands of nodes is large.
    const std::lock_guard lock(mutex_);
    std::swap(state_, answer.state);
  }
  for (const auto& order : answer.orders)
    if (const auto* set = std::get_if<decide::SetTimer>(&order)) set_timer(*set);
  hooks_.carry_out(answer);
  for (const auto row : answer.rows) env_.point(decide::to_string(row));
}

/// The machine has one timer at a time. Outdated ones must not pile up.
void RunDriver::set_timer(const decide::SetTimer& set) {
  if (timer_) loop_.cancel(*timer_);
  timer_ = loop_.after(set.after, [this, timer = set.timer] { take(decide::Timeout{timer}); });
}

}  // namespace troupe::actors
