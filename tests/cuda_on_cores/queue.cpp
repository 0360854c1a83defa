#include "tests/cuda_on_cores/queue.h"

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <utility>

#include "tests/cuda_on_cores/driver.h"

namespace cuda_on_cores {
namespace {

// State of all queues and events.
std::mutex mutex;
std::condition_variable changed;
Temper next_temper;
bool all_failed = false;      // A kernel's error affects all queues of its process.
bool somebody_waits = false;  // Queues that the waiting thread depends on are worked off too.
std::uint64_t made = 0, waits = 0, kernels = 0, by_host = 0;
std::int64_t queues = 0, events = 0;
// The poll interval for waits that nobody can wake.
constexpr std::chrono::milliseconds a_while{1};
std::uint64_t recorded = 0, played = 0, spoilt = 0;
thread_local Queue* recorder = nullptr;  // The queue that records this thread's work.
thread_local bool is_spoilt = false;     // The recording is invalid.
std::vector<std::string> ranges;
int ranges_open = 0;

/// Returns the temper with a new seed, so that queues differ.
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
  ++events;
}
Event::~Event() {
  const std::lock_guard lock(mutex);
  --events;
}

std::uint64_t events_made() {
  const std::lock_guard lock(mutex);
  return made;
}

std::int64_t events_left() {
  const std::lock_guard lock(mutex);
  return events;
}

std::uint64_t waits_put() {
  const std::lock_guard lock(mutex);
  return waits;
}

std::uint64_t kernels_put() {
  const std::lock_guard lock(mutex);
  return kernels;
}

std::uint64_t host_waits() {
  const std::lock_guard lock(mutex);
  return by_host;
}

void count_host_wait() {
  const std::lock_guard lock(mutex);
  ++by_host;
}

void count_kernel() {
  const std::lock_guard lock(mutex);
  ++kernels;
}

PlayableRecording::PlayableRecording(const Recording& recording) { state_->recording = recording; }

PlayableRecording::~PlayableRecording() {
  const std::lock_guard lock(mutex);
  if (state_->put == state_->done || all_failed) return;
  std::fputs("a graph goes that a queue has yet to play\n", stderr);
  std::abort();
}

std::uint64_t recordings_made() {
  const std::lock_guard lock(mutex);
  return recorded;
}
std::uint64_t recordings_played() {
  const std::lock_guard lock(mutex);
  return played;
}
std::uint64_t recordings_spoilt() {
  const std::lock_guard lock(mutex);
  return spoilt;
}

bool spoils_recording() {
  if (!recorder) return false;
  const std::lock_guard lock(mutex);
  ++spoilt;
  is_spoilt = true;
  return true;
}

bool Queue::begin_recording() {
  if (spoils_recording()) return false;
  recorder = this;
  is_spoilt = false;
  recording_ = std::make_unique<Recording>();
  return true;
}

std::unique_ptr<Recording> Queue::end_recording() {
  if (recorder != this) return nullptr;
  recorder = nullptr;
  const std::lock_guard lock(mutex);
  if (!is_spoilt) ++recorded;
  return is_spoilt ? std::exchange(recording_, nullptr), nullptr : std::move(recording_);
}

Queue::Queue() : temper_(take_temper()), random_(temper_.seed) {
  const std::lock_guard lock(mutex);
  ++queues;
}

Queue::~Queue() {
  const std::lock_guard lock(mutex);
  --queues;
}

std::int64_t queues_left() {
  const std::lock_guard lock(mutex);
  return queues;
}

void Queue::keep_for_library() {
  const std::lock_guard lock(mutex);
  is_kept_ = true;
}

void Queue::let_go() {
  const std::lock_guard lock(mutex);
  is_kept_ = false;
}

bool Queue::add(Piece piece) {
  if (is_kept_) {
    std::fputs("something is put into a queue that a library has yet to let go\n", stderr);
    std::abort();
  }
  if (all_failed) return false;
  pieces_.push_back(std::move(piece));
  return true;
}

bool Queue::put(std::function<void()> work) {
  if (recorder == this) {
    recording_->works.push_back(std::move(work));
    return true;
  }
  const std::lock_guard lock(mutex);
  return add([work = std::move(work)] {
    work();
    return true;
  });
}

/// Called by the library that reserved the queue, or by others if none has.
bool Queue::put_until(std::function<bool()> is_done) {
  if (recorder == this) return !spoils_recording();
  const std::lock_guard lock(mutex);
  if (all_failed) return false;
  pieces_.push_back(std::move(is_done));
  return true;
}

/// Adds the recording piece by piece; only for the host it is one unit.
bool Queue::put(PlayableRecording& playable) {
  if (spoils_recording()) return false;
  const std::lock_guard lock(mutex);
  auto& state = *playable.state_;
  if (state.queue != this && state.put != state.done) return false;
  state.queue = this;
  ++state.put;
  ++played;
  for (const auto& work : state.recording.works)
    if (!add([&work, of = playable.state_] {
          work();
          return true;
        }))
      return false;
  return add([of = playable.state_] {
    ++of->done;
    return true;
  });
}

bool Queue::put(Event& event) {
  if (recorder == this) return !spoils_recording();
  const std::lock_guard lock(mutex);
  auto& state = *event.state_;
  state.queue = this;
  return add([state = event.state_, number = ++state.put] {
    state->reached = number;
    return true;
  });
}

bool Queue::put_wait(Event& event) {
  if (recorder == this) return !spoils_recording();
  const std::lock_guard lock(mutex);
  ++waits;
  return add([state = event.state_, number = event.state_->put] {
    // A thread that waits for this queue also works off the other one. A query only lets it go on.
    do {
      if (state->reached >= number) return true;
    } while (state->queue->step() && somebody_waits);
    return state->reached >= number;
  });
}

/// Does one piece of work. Returns false if it cannot.
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
  if (spoils_recording()) return false;
  std::unique_lock lock(mutex);
  if (pieces_.empty()) return !all_failed;
  const OpenMemory open;
  while (!pieces_.empty() && !all_failed) {
    somebody_waits = true;
    const bool moved = step();
    somebody_waits = false;
    if (!moved) changed.wait_for(lock, a_while);
  }
  return !all_failed;
}

Answer Queue::ask(const Event& event) {
  if (spoils_recording()) return Answer::failed;
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
