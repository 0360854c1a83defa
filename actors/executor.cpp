#include "actors/executor.h"

#include <future>
#include <utility>

#include "core/thread_name.h"

namespace troupe::actors {
namespace {

// A thread that has gone to sleep takes some 25 us and more to wake; between the passes of a
// pipeline the next job is mostly there sooner.
constexpr auto spin = std::chrono::microseconds(50);

}  // namespace

ComputingThread::ComputingThread(int threads, const Pace* pace, const char* name)
    : pace_(pace), thread_([this, threads, name] {
        name_thread(name);
        prepare_computing_thread();
        Stream stream(memory_, threads);
        run(stream, nullptr);
      }) {}

ComputingThread::ComputingThread(std::unique_ptr<Device> device,
                                 std::unique_ptr<MemorySource> memory, const Pace* pace)
    : pace_(pace), device_(std::move(device)), memory_(std::move(memory)), thread_([this] {
        name_thread("computing");
        prepare_computing_thread();
        device_->enter();
        LateReturns late;
        Stream stream(memory_, *device_);
        run(stream, &late);
      }) {}

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

void ComputingThread::run(Stream& stream, LateReturns* late) {
  for (std::uint32_t done = 0;; ++done) {
    const auto patience = std::chrono::steady_clock::now() + spin;
    while (posted_.load(std::memory_order_acquire) == done) {
      if (std::chrono::steady_clock::now() < patience) continue;
      asleep_ = true;
      posted_.wait(done);
      asleep_ = false;
    }
    Job job = next();
    if (!job) return;
    const auto start = Pace::Clock::now();
    job(stream);
    if (late) {
      job = nullptr;  // With all that it holds.
      stream.wait();
      late->settle();
    }
    if (pace_) pace_->wait_after(Pace::Clock::now() - start);
  }
}

bool finish(const std::vector<Executor*>& executors,
            std::optional<std::chrono::steady_clock::time_point> end) {
  std::vector<std::future<void>> all;
  for (auto* executor : executors) {
    const auto done = std::make_shared<std::promise<void>>();
    all.push_back(done->get_future());
    executor->post([done](Stream&) { done->set_value(); });
  }
  for (const auto& one : all) {
    if (!end)
      one.wait();
    else if (one.wait_until(*end) != std::future_status::ready)
      return false;
  }
  return true;
}

}  // namespace troupe::actors
