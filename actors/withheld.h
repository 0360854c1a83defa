#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "core/memory/device.h"
#include "core/memory/device_progress.h"

namespace troupe::actors {

/// What one device has made and another one goes on with: once the first has passed the mark. Where
/// there is no device it is there already. Within one process alone.
struct After {
  Device* device = nullptr;
  Device::Mark mark = 0;
  // The same, as DeviceProgress counts.
  std::uint64_t work = 0;
  DeviceProgress::Moment moment = 0;
};

/// While a thread has one of these, it gives work to a device, and what it would say waits until
/// the device has done that.
class Withheld {
 public:
  using Saying = std::function<void()>;
  using Handing = std::function<void(const After&)>;

  Withheld();
  ~Withheld();
  Withheld(const Withheld&) = delete;
  Withheld& operator=(const Withheld&) = delete;

  void add(Saying saying) { waiting_.push_back(std::move(saying)); }
  /// For who hears of the mark, and so need not wait: once all of the job is given to the device.
  void add(Handing handing) { handed_.push_back(std::move(handing)); }
  /// What this thread gives to `device` from now on comes after that.
  void begin_after(Device& device, const After& after) {
    begins_ = device.follow(*after.device, after.mark);
    DeviceWork::of_this_thread()->follow(after.work, after.moment);
  }

  /// All that waits, in order.
  std::vector<Saying> take() { return std::move(waiting_); }
  void hand_over(const After& after) {
    for (const auto& hand : std::exchange(handed_, {})) hand(after);
  }
  /// What the device must have passed before the job can begin; 0 where that is nothing.
  Device::Mark begins() const { return begins_; }

  /// Null where nothing is withheld.
  static Withheld* of_this_thread();

 private:
  std::vector<Saying> waiting_;
  std::vector<Handing> handed_;
  Device::Mark begins_ = 0;
};

/// By a job: calls it on the same thread once all is done that the job has given to its device by
/// now. Where the cores compute, that is at once.
template <class Saying>
void once_done(Saying saying) {
  if (auto* withheld = Withheld::of_this_thread())
    return withheld->add(Withheld::Saying(std::move(saying)));
  saying();
}

}  // namespace troupe::actors
