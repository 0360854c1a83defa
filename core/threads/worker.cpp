#include "core/threads/worker.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "core/threads/thread_name.h"

namespace troupe {

Worker::Worker(LoopOptions options, Now now)
    : options_(std::move(options)), now_(std::move(now)), thread_([this] { run(); }) {}

Worker::Posted Worker::post(Task task) {
  {
    const std::lock_guard lock(mutex_);
    if (is_ending_) return Posted::ended;
    if (waiting_.size() >= options_.most_waiting) return Posted::full;
    waiting_.add(now_(), std::move(task));
  }
  changed_.notify_one();
  return Posted::yes;
}

std::optional<Worker::Timer> Worker::after(std::chrono::nanoseconds time, Task task) {
  std::optional<Timer> timer;
  {
    const std::lock_guard lock(mutex_);
    if (is_ending_ || waiting_.size() >= options_.most_waiting) return {};
    const auto now = now_();
    timer = waiting_.add(now + std::min(time, Env::Time::max() - now), std::move(task));
  }
  changed_.notify_one();
  return timer;
}

void Worker::cancel(Timer timer) {
  Task dropped;  // Declared before the lock, so that its destructor runs without the lock.
  const std::lock_guard lock(mutex_);
  dropped = waiting_.cancel(timer);
}

Worker::Posted Worker::aside(const std::string& name, Task work, Task then) {
  Worker* aside = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (is_ending_) return Posted::ended;
    auto& made = asides_[name];
    if (!made) made = std::make_unique<Worker>(LoopOptions{name, options_.most_waiting}, now_);
    aside = made.get();
  }
  return aside->post([this, work = std::move(work), then = std::move(then)]() mutable {
    work();
    work = nullptr;  // Frees what the work holds before `then` runs.
    take_back(std::move(then));
  });
}

void Worker::take_back(Task then) {
  {
    const std::lock_guard lock(mutex_);
    if (is_ending_) return;
    waiting_.add(now_(), std::move(then));
  }
  changed_.notify_one();
}

void Worker::stop() {
  assert(thread_.get_id() != std::this_thread::get_id() && "a worker cannot wait for itself");
  std::vector<TaskQueue> dropped;  // Declared first, so that destructors run without the lock.
  {
    const std::lock_guard lock(mutex_);
    close(dropped);
    // Nobody sees the end before, so that no further work begins after it.
    for (const auto& [name, aside] : asides_) {
      const std::lock_guard lock_of_aside(aside->mutex_);
      aside->close(dropped);
    }
  }
  if (thread_.joinable()) thread_.join();
  for (const auto& [name, aside] : asides_) aside->stop();
}

/// Begins the end and moves out all that waits. Requires the lock.
void Worker::close(std::vector<TaskQueue>& dropped) {
  is_ending_ = true;
  dropped.push_back(std::exchange(waiting_, {}));
  changed_.notify_one();
}

void Worker::run() {
  name_thread(options_.name.c_str());
  std::unique_lock lock(mutex_);
  while (!is_ending_) {
    const auto now = now_();
    if (auto task = waiting_.take(now)) {
      lock.unlock();
      (*task)();
      task.reset();
      lock.lock();
    } else if (const auto due = waiting_.next_due()) {
      // Waits an hour at most, so that no clock overflows.
      changed_.wait_for(lock,
                        std::min<std::chrono::nanoseconds>(*due - now, std::chrono::hours(1)));
    } else {
      changed_.wait(lock);
    }
  }
}

}  // namespace troupe
