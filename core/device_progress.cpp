#include "core/device_progress.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <utility>

#include "core/memory_pool.h"

namespace troupe {
namespace {

// As far as a device that has nothing to do: whatever comes back, it is not about to read it.
constexpr auto all_done = std::numeric_limits<DeviceProgress::Moment>::max();

thread_local DeviceWork* work_of_thread = nullptr;

}  // namespace

DeviceProgress::Moment DeviceProgress::settled(const DeviceWork* mine) const {
  const std::lock_guard lock(mutex_);
  Moment least = all_done;
  for (const auto& device : devices_)
    if (!mine || device != mine->done_) least = std::min(least, device->load());
  return least;
}

DeviceWork::DeviceWork(DeviceProgress& progress)
    : progress_(progress), done_(std::make_shared<DeviceProgress::Done>(all_done)) {
  assert(!work_of_thread && "a thread gives work to one device");
  work_of_thread = this;
  const std::lock_guard lock(progress_.mutex_);
  progress_.devices_.push_back(done_);
}

DeviceWork::~DeviceWork() {
  work_of_thread = nullptr;
  give_back_own();
  if (*done_ != all_done) return;
  const std::lock_guard lock(progress_.mutex_);
  std::erase(progress_.devices_, done_);
}

DeviceWork* DeviceWork::of_this_thread() { return work_of_thread; }

void DeviceWork::give_back_own() {
  for (auto& [from, blocks] : own_) {
    const auto& [pool, size] = from;
    pool->keep_late(size, blocks);
    blocks.clear();
  }
}

void DeviceWork::begin_job() {
  job_ = ++progress_.jobs_;
  // Of what came back before, the job can use nothing.
  if (*done_ == all_done) *done_ = progress_.clock_.load();
}

DeviceProgress::Moment DeviceWork::end_job() {
  job_ = 0;
  give_back_own();
  // A moment of its own: the job before, which may end at the same one, does not let go of them.
  if (!held_now_.empty()) held_.emplace_back(progress_.came_back(), std::exchange(held_now_, {}));
  return progress_.clock_.load();
}

void DeviceWork::done(DeviceProgress::Moment moment) {
  *done_ = moment;
  while (!held_.empty() && held_.front().first <= moment) held_.pop_front();
}

void DeviceWork::idle() {
  *done_ = all_done;
  held_.clear();
}

}  // namespace troupe
