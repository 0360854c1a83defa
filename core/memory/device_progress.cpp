#include "core/memory/device_progress.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <utility>

namespace troupe {
namespace {

// The progress of an idle device: it is not about to read any returned block.
constexpr auto all_done = std::numeric_limits<DeviceProgress::Moment>::max();

thread_local DeviceWork* work_of_thread = nullptr;

}  // namespace

DeviceProgress::Moment DeviceProgress::settled(const DeviceWork* mine) const {
  const std::lock_guard lock(mutex_);
  Moment least = all_done;
  for (const auto& device : devices_) {
    if (mine && device == mine->device_) continue;
    Moment until = device->done;
    if (mine)
      if (const auto found = mine->followed_.find(device->number); found != mine->followed_.end())
        until = std::max(until, found->second.until);
    least = std::min(least, until);
  }
  return least;
}

DeviceProgress::Moment DeviceProgress::done_by_others(const DeviceWork& mine) const {
  const std::lock_guard lock(mutex_);
  Moment least = all_done;
  for (const auto& device : devices_) {
    if (device == mine.device_) continue;
    Moment until = device->done;
    if (const auto found = mine.followed_.find(device->number); found != mine.followed_.end())
      until = std::max(until, found->second.reached);
    least = std::min(least, until);
  }
  return least;
}

DeviceWork::DeviceWork(DeviceProgress& progress)
    : progress_(progress), device_(std::make_shared<Device>()) {
  assert(!work_of_thread && "a thread gives work to one device");
  work_of_thread = this;
  device_->done = all_done;
  const std::lock_guard lock(progress_.mutex_);
  device_->number = ++progress_.numbers_;
  progress_.devices_.push_back(device_);
}

DeviceWork::~DeviceWork() {
  work_of_thread = nullptr;
  if (device_->done != all_done) return;
  const std::lock_guard lock(progress_.mutex_);
  std::erase(progress_.devices_, device_);
}

DeviceWork* DeviceWork::of_this_thread() { return work_of_thread; }

void DeviceWork::see(MemoryBlock& block) {
  const auto* work = work_of_thread;
  if (!work || work->number() == block.taken_by) return;
  const auto now = work->progress_.now();
  auto seen = block.seen.load(std::memory_order_relaxed);
  while (seen < now && !block.seen.compare_exchange_weak(seen, now, std::memory_order_relaxed)) {
  }
}

void DeviceWork::begin_job() {
  // A job cannot use blocks that were returned before it began.
  if (device_->done == all_done) device_->done = progress_.clock_.load();
}

DeviceProgress::Moment DeviceWork::end_job() {
  // A time of their own: the previous job may end now, and its done() must not release them.
  if (!held_now_.empty()) held_.emplace_back(progress_.now(), std::exchange(held_now_, {}));
  return progress_.clock_.load();
}

void DeviceWork::has_done(Moment moment) {
  device_->done = moment;
  has_reached(moment);
}

void DeviceWork::has_reached(Moment moment) {
  for (auto& [other, followed] : followed_)
    if (followed.since <= moment) followed.reached = followed.until;
}

void DeviceWork::done(Moment moment) {
  has_done(moment);
  while (!held_.empty() && held_.front().first <= moment) held_.pop_front();
}

void DeviceWork::caught_up() {
  caught_up_ = progress_.now();
  has_reached(caught_up_);
}

void DeviceWork::idle() {
  has_done(all_done);
  held_.clear();
}

void DeviceWork::follow(std::uint64_t other, DeviceProgress::Moment moment) {
  auto& followed = followed_[other];
  if (moment <= followed.until) return;
  followed.until = moment;
  followed.since = progress_.now();
}

}  // namespace troupe
