#include "actors/executor.h"

#include <utility>

namespace troupe::actors {
namespace {

// A thread that has gone to sleep takes some 25 us and more to wake; between the passes of a
// pipeline the next job is mostly there sooner.
constexpr auto spin = std::chrono::microseconds(50);

}  // namespace

ComputingThread::ComputingThread(int threads, const Pace* pace)
    : pace_(pace), thread_([this, threads] { run(threads); }) {}

ComputingThread::~ComputingThread() {
  post(nullptr);
  thread_.join();
}

void ComputingThread::post(Job job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  posted_.fetch_add(1);
  if (asleep_.load()) posted_.notify_one();  // A system call, so only where it is needed.
}

ComputingThread::Job ComputingThread::next() {
  const std::lock_guard lock(mutex_);
  Job job = std::move(jobs_.front());
  jobs_.pop_front();
  return job;
}

void ComputingThread::run(int threads) {
  prepare_computing_thread();
  Stream stream(memory_, threads);
  for (std::uint32_t done = 0;; ++done) {
    const auto patience = std::chrono::steady_clock::now() + spin;
    while (posted_.load(std::memory_order_acquire) == done) {
      if (std::chrono::steady_clock::now() < patience) continue;
      asleep_ = true;
      posted_.wait(done);
      asleep_ = false;
    }
    const Job job = next();
    if (!job) return;
    if (!pace_) {
      job(stream);
      continue;
    }
    const auto start = Pace::Clock::now();
    job(stream);
    pace_->wait_after(Pace::Clock::now() - start);
  }
}

}  // namespace troupe::actors
