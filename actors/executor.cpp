#include "actors/executor.h"

#include <time.h>

#include <future>
#include <utility>

#include "actors/deferred_sends.h"
#include "core/threads/thread_name.h"

namespace troupe::actors {

std::chrono::nanoseconds Executor::computed() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

ComputingThread::ComputingThread(int threads, const Pace* pace, std::string name)
    : pace_(pace), thread_([this, threads, name = std::move(name)] {
        name_thread(name.c_str());
        prepare_computing_thread();
        Stream stream(memory_, threads);
        run(stream);
      }) {}

ComputingThread::~ComputingThread() {
  post(nullptr);
  thread_.join();
}

void ComputingThread::run(Stream& stream) {
  for (;;) {
    jobs_.wait();
    const auto job = jobs_.take();
    if (!job) return;
    WorkTime worked{Pace::Clock::now(), {}};
    if (pace_ && pace_->is_lowered())
      work_slowly(*job, stream);
    else
      job->work(stream);
    worked.end = Pace::Clock::now();
    job->done(worked);
  }
}

/// Withholds the job's messages until the slower process would have finished it.
void ComputingThread::work_slowly(Job& job, Stream& stream) {
  std::vector<DeferredSends::Saying> said;
  {
    DeferredSends deferred_sends;
    const auto start = Pace::Clock::now();
    job.work(stream);
    pace_->wait_after(Pace::Clock::now() - start);
    said = deferred_sends.take();
    deferred_sends.hand_over({});
  }
  for (const auto& say : said) say();
}

namespace {

/// A job that comes after all others.
class LastJob final : public Job {
 public:
  explicit LastJob(std::function<void()> then) : then_(std::move(then)) {}
  void work(Stream&) override {}
  void done(const WorkTime&) override { then_(); }
  void lost(const std::string&) override { then_(); }

 private:
  std::function<void()> then_;
};

}  // namespace

void finish(const std::vector<Executor*>& executors, std::function<void()> then) {
  // The last of the executors releases it.
  const std::shared_ptr<void> finished(nullptr, [then = std::move(then)](void*) { then(); });
  for (auto* executor : executors)
    executor->post(std::make_unique<LastJob>([held = finished]() mutable { held.reset(); }));
}

bool finish(const std::vector<Executor*>& executors,
            std::optional<std::chrono::steady_clock::time_point> end) {
  std::vector<std::future<void>> all;
  for (auto* executor : executors) {
    const auto reached = std::make_shared<std::promise<void>>();
    all.push_back(reached->get_future());
    executor->post(std::make_unique<LastJob>([reached] { reached->set_value(); }));
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
