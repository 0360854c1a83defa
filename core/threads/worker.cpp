#include "core/threads/worker.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "core/threads/thread_name.h"

namespace troupe {

Worker::Worker(std::string name, Options options)
    : options_(std::move(options)), thread_([this, name = std::move(name)] { run(name); }) {}

Worker::Posted Worker::post(Task task) {
  {
    const std::lock_guard lock(mutex_);
    if (is_ending_) return Posted::ended;
    if (waiting_.size() >= options_.most_waiting) return Posted::full;
    waiting_.add(options_.now(), std::move(task));
  }
  changed_.notify_one();
  return Posted::yes;
}

std::optional<Worker::Timer> Worker::after(std::chrono::nanoseconds time, Task task) {
  std::optional<Timer> timer;
  {
    const std::lock_guard lock(mutex_);
    if (is_ending_ || waiting_.size() >= options_.most_waiting) return {};
    const Time now = options_.now();
    timer = waiting_.add(now + std::min(time, Time::max() - now), std::move(task));
  }
  changed_.notify_one();
  return timer;
}

void Worker::cancel(Timer timer) {
  Task dropped;  // Declared before the lock, so that its destructor runs without the lock.
  const std::lock_guard lock(mutex_);
  dropped = waiting_.cancel(timer);
}

void Worker::end() {
  assert(thread_.get_id() != std::this_thread::get_id() && "a worker cannot wait for itself");
  TaskQueue dropped;
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
    std::swap(dropped, waiting_);
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Worker::run(const std::string& name) {
  name_thread(name.c_str());
  std::unique_lock lock(mutex_);
  while (!is_ending_) {
    const Time now = options_.now();
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
