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
  post([this, event = std::move(event)] {
    events_.push_back(event);
    answer_all();
  });
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

/// Answers all events in order. If one cannot be written down, later ones wait too, except those
/// of steps: training goes on.
void RunDriver::answer_all() {
  for (std::size_t at = 0; at < events_.size();) {
    const auto event = events_[at];
    if (is_held_up_ && !decide::is_of_steps(event)) {
      ++at;
    } else if (answer(event)) {
      events_.erase(events_.begin() + static_cast<std::ptrdiff_t>(at));
    } else {
      is_held_up_ = true;
      after(write_again, [this] {
        is_held_up_ = false;
        answer_all();
      });
    }
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
    if (const auto* set = std::get_if<decide::SetTimer>(&order))
      after(set->after, [this, timer = set->timer] { take(decide::Timeout{timer}); });
  hooks_.carry_out(answer);
  for (const auto row : answer.rows) env_.point(decide::to_string(row));
}

}  // namespace troupe::actors
