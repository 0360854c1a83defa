#include "actors/device_thread.h"

#include <sys/prctl.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "core/threads/thread_name.h"

namespace troupe::actors {
namespace {

// Short jobs end within `look_for`; for longer ones the thread naps and leaves the core to others.
constexpr auto look_for = std::chrono::microseconds(20);
constexpr auto nap = std::chrono::microseconds(20);
// The system extends a sleep by up to 50 us unless the thread asks for less.
constexpr unsigned long nap_slack = 1'000;  // Nanoseconds.
// A long gap between looks says little about the device: the process may have been stopped.
constexpr auto longest_gap = std::chrono::milliseconds(100);

/// Leaks a failed device until the process ends.
void leave_behind(std::unique_ptr<Device> device, std::unique_ptr<MemoryPool> memory) {
  static std::mutex mutex;
  static auto& left =
      *new std::vector<std::pair<std::unique_ptr<Device>, std::unique_ptr<MemoryPool>>>;
  const std::lock_guard lock(mutex);
  left.emplace_back(std::move(device), std::move(memory));
}

}  // namespace

DeviceThread::DeviceThread(std::unique_ptr<Device> device, std::unique_ptr<MemorySource> memory,
                           std::shared_ptr<DeviceProgress> devices, DeviceLimits limits,
                           const Pace* pace, std::string name)
    : name_(std::move(name)),
      device_(std::move(device)),
      devices_(std::move(devices)),
      limits_(limits),
      pace_(pace),
      memory_(std::make_unique<MemoryPool>(std::move(memory), devices_)),
      thread_([this] { run(); }) {}

DeviceThread::~DeviceThread() {
  jobs_.put(nullptr);
  thread_.join();
  if (fault_) leave_behind(std::move(device_), std::move(memory_));
}

std::optional<std::string> DeviceThread::fault() const {
  const std::lock_guard lock(mutex_);
  return fault_;
}

void DeviceThread::run() {
  name_thread(name_.c_str());
  (void)prctl(PR_SET_TIMERSLACK, nap_slack);
  prepare_computing_thread();
  DeviceWork work(*devices_);
  Stream stream(*memory_, *device_);
  try {
    device_->enter();
  } catch (const std::exception& exception) {
    fail(exception.what());
  }
  for (bool ends = false; !ends || !given_.empty();) {
    look(work);
    if (!ends && given_.size() < limits_.ahead && jobs_.has_one()) {
      if (auto job = jobs_.take())
        give(std::move(job), stream, work);
      else
        ends = true;
    } else if (!given_.empty()) {
      rest();
    } else if (!ends) {
      jobs_.wait();
    }
  }
}

void DeviceThread::give(std::unique_ptr<Job> job, Stream& stream, DeviceWork& work) {
  if (fault_) return job->lost(*fault_);
  Given given{std::move(job), {}, 0, 0, 0, Clock::now()};
  std::optional<std::string> trouble;
  {
    DeferredSends deferred_sends;
    work.begin_job();
    given.job->work(stream);
    try {
      given.mark = device_->mark();
    } catch (const std::exception& exception) {
      trouble = exception.what();
    }
    given.moment = work.end_job();
    given.begins = deferred_sends.begins();
    given.said = deferred_sends.take();
    if (!trouble)
      deferred_sends.hand_over({device_.get(), given.mark, work.number(), given.moment});
  }
  if (given_.empty()) waited_ = {};
  given_.push_back(std::move(given));
  moved_ = Clock::now();
  if (trouble) fail(*trouble);
}

/// Finishes the jobs that the device has done.
void DeviceThread::look(DeviceWork& work) {
  if (given_.empty()) return;
  const auto passed = device_->passed();
  if (!passed) return fail(passed.error().text);
  while (!given_.empty()) {
    if (given_.front().begins != 0 && given_.front().begins <= *passed) begin_first();
    if (given_.front().mark > *passed) break;
    // Free the memory first: receivers of the job's messages may need some.
    work.done(given_.front().moment);
    finish_first();
  }
  if (given_.empty()) return work.idle();
  const auto now = Clock::now();
  waited_ += std::min<Clock::duration>(now - std::max(looked_, moved_), longest_gap);
  looked_ = now;
  const bool follows = given_.front().begins != 0;
  const auto patience = limits_.patience * (follows ? limits_.ahead + 1 : 1);
  if (waited_ < patience) return;
  fail("the device has done nothing of what it was given, for " +
       std::to_string(std::chrono::ceil<std::chrono::seconds>(patience).count()) + " s");
}

/// Notes that the device has begun the first job since the last look; the exact time is unknown.
void DeviceThread::begin_first() {
  auto& given = given_.front();
  given.begins = 0;
  given.begun = std::max(given.begun, looked_);
  waited_ = {};
}

void DeviceThread::finish_first() {
  auto given = std::move(given_.front());
  given_.pop_front();
  // A device begins a job when it has done the job before.
  const auto began = std::max(given.begun, done_);
  if (pace_) pace_->wait_after(Clock::now() - began);
  moved_ = Clock::now();
  waited_ = {};
  const WorkTime worked{began, moved_};
  done_ = moved_;
  for (const auto& say : given.said) say();
  given.job->done(worked);
}

void DeviceThread::rest() const {
  if (Clock::now() - moved_ > look_for) std::this_thread::sleep_for(nap);
}

void DeviceThread::fail(const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    fault_ = why;
  }
  for (auto& given : std::exchange(given_, {})) given.job->lost(why);
}

}  // namespace troupe::actors
