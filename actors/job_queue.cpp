#include "actors/job_queue.h"

#include <utility>

namespace troupe::actors {
namespace {

// A thread that has gone to sleep takes some 25 us and more to wake; between the passes of a
// pipeline the next job is mostly there sooner.
constexpr auto spin = std::chrono::microseconds(50);

}  // namespace

void JobQueue::put(std::unique_ptr<Job> job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  posted_.fetch_add(1);
  if (asleep_.load()) posted_.notify_one();  // A system call, so only where it is needed.
}

void JobQueue::wait() {
  const auto patience = std::chrono::steady_clock::now() + spin;
  while (!has_one()) {
    if (std::chrono::steady_clock::now() < patience) continue;
    asleep_ = true;
    posted_.wait(taken_);
    asleep_ = false;
  }
}

std::unique_ptr<Job> JobQueue::take() {
  ++taken_;
  const std::lock_guard lock(mutex_);
  auto job = std::move(jobs_.front());
  jobs_.pop_front();
  return job;
}

}  // namespace troupe::actors
