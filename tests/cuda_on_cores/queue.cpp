#include "tests/cuda_on_cores/queue.h"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "tests/cuda_on_cores/driver.h"

namespace cuda_on_cores {
namespace {

// Of all queues and events.
std::mutex mutex;
std::condition_variable changed;
Temper next_temper;
bool all_failed = false;      // As an error of one kernel is one of all queues of its process.
bool somebody_waits = false;  // Then those that he waits for are worked off too.
std::uint64_t made = 0, waits = 0;
std::vector<std::string> ranges;
int ranges_open = 0;

/// Queues that are made one after another are not alike.
Temper take_temper() {
  const std::lock_guard lock(mutex);
  ++next_temper.seed;
  return next_temper;
}

}  // namespace

void set_temper(const Temper& temper) {
  const std::lock_guard lock(mutex);
  next_temper = temper;
  all_failed = false;
}

void let_all_fail() {
  const std::lock_guard lock(mutex);
  all_failed = true;
  changed.notify_all();
}

Event::Event() {
  const std::lock_guard lock(mutex);
  ++made;
}
Event::~Event() = default;

std::uint64_t events_made() {
  const std::lock_guard lock(mutex);
  return made;
}

std::uint64_t waits_put() {
  const std::lock_guard lock(mutex);
  return waits;
}

Queue::Queue() : temper_(take_temper()), random_(temper_.seed) {}

bool Queue::add(Piece piece) {
  if (all_failed) return false;
  pieces_.push_back(std::move(piece));
  return true;
}

bool Queue::put(std::function<void()> work) {
  const std::lock_guard lock(mutex);
  return add([work = std::move(work)] {
    work();
    return true;
  });
}

bool Queue::put(Event& event) {
  const std::lock_guard lock(mutex);
  auto& state = *event.state_;
  state.queue = this;
  return add([state = event.state_, number = ++state.put] {
    state->reached = number;
    return true;
  });
}

bool Queue::put_wait(Event& event) {
  const std::lock_guard lock(mutex);
  ++waits;
  return add([state = event.state_, number = event.state_->put] {
    // Whoever waits for this queue waits for the other one's work too; who only asks lets it go on.
    do {
      if (state->reached >= number) return true;
    } while (state->queue->step() && somebody_waits);
    return state->reached >= number;
  });
}

/// False where it cannot go on.
bool Queue::step() {
  if (pieces_.empty() || all_failed) return false;
  if (temper_.stops_after && done_ >= *temper_.stops_after) return false;
  if (!pieces_.front()()) return false;
  pieces_.pop_front();
  if (++done_ == temper_.fails_after) all_failed = true;
  changed.notify_all();
  return true;
}

bool Queue::work_off() {
  std::unique_lock lock(mutex);
  if (pieces_.empty()) return !all_failed;
  const OpenMemory open;
  while (!pieces_.empty() && !all_failed) {
    somebody_waits = true;
    const bool moved = step();
    somebody_waits = false;
    if (!moved) changed.wait(lock);
  }
  return !all_failed;
}

Answer Queue::ask(const Event& event) {
  const std::lock_guard lock(mutex);
  const auto& state = *event.state_;
  auto& queue = *state.queue;
  std::optional<OpenMemory> open;
  if (!queue.pieces_.empty()) open.emplace();
  for (auto left = queue.random_() % (queue.temper_.most_at_a_look + 1); left > 0; --left)
    if (!queue.step()) break;
  if (state.reached == state.put) return Answer::done;
  return all_failed ? Answer::failed : Answer::not_yet;
}

std::vector<std::string> take_ranges() {
  const std::lock_guard lock(mutex);
  return std::exchange(ranges, {});
}
int open_ranges() {
  const std::lock_guard lock(mutex);
  return ranges_open;
}
void begin_range(const char* name) {
  const std::lock_guard lock(mutex);
  ranges.emplace_back(name);
  ++ranges_open;
}
void end_range() {
  const std::lock_guard lock(mutex);
  --ranges_open;
}

}  // namespace cuda_on_cores
