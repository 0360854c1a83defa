#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "core/memory/device.h"
#include "core/memory/device_progress.h"

namespace troupe::actors {

/// A point in a device's queue. Data made by that device can be used by another one after it has
/// passed the mark. A null device means that the data is complete. Valid within one process only.
struct DeviceMark {
  Device* device = nullptr;
  Device::Mark mark = 0;
  // The same point in DeviceProgress's counts.
  std::uint64_t work = 0;
  DeviceProgress::Moment moment = 0;
};

/// While a thread has one of these, it gives work to a device, and its messages are withheld until
/// the device has done that work.
class DeferredSends {
 public:
  using Saying = std::function<void()>;
  using Handing = std::function<void(const DeviceMark&)>;

  DeferredSends();
  ~DeferredSends();
  DeferredSends(const DeferredSends&) = delete;
  DeferredSends& operator=(const DeferredSends&) = delete;

  void add(Saying saying) { waiting_.push_back(std::move(saying)); }
  /// Called when the whole job is enqueued, for receivers that follow its mark.
  void add(Handing handing) { handed_.push_back(std::move(handing)); }
  /// Orders this thread's further work on `device` behind `after`.
  void begin_after(Device& device, const DeviceMark& after) {
    begins_ = device.follow(*after.device, after.mark);
    DeviceWork::of_this_thread()->follow(after.work, after.moment);
  }

  /// Returns all withheld messages, in order.
  std::vector<Saying> take() { return std::move(waiting_); }
  void hand_over(const DeviceMark& after) {
    for (const auto& hand : std::exchange(handed_, {})) hand(after);
  }
  /// Returns the mark that must pass before the job can begin, or 0 if there is none.
  Device::Mark begins() const { return begins_; }

  /// Returns null if this thread withholds nothing.
  static DeferredSends* of_this_thread();

 private:
  std::vector<Saying> waiting_;
  std::vector<Handing> handed_;
  Device::Mark begins_ = 0;
};

/// Called by a job. Calls `saying` on the same thread when the device has done all that the job
/// gave it so far; at once if the CPU computes.
template <class Saying>
void once_done(Saying saying) {
  if (auto* deferred_sends = DeferredSends::of_this_thread())
    return deferred_sends->add(DeferredSends::Saying(std::move(saying)));
  saying();
}

}  // namespace troupe::actors
