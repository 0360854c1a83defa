#include "actors/job_queue.h"

#include <utility>

namespace troupe::actors {
namespace {

// Waking a sleeping thread takes 25 us or more; between the passes of a pipeline the next job
// usually comes sooner.
constexpr auto spin = std::chrono::microseconds(50);

}  // namespace

void JobQueue::put(std::unique_ptr<Job> job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  posted_.fetch_add(1);
  if (asleep_.load()) posted_.notify_one();  // A system call, so only if needed.
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
