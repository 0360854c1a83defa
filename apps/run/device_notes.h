#pragma once

#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <utility>

namespace troupe::apps {

/// Notes of devices on how they compute, from any thread. Passes each text on once.
class DeviceNotes {
 public:
  using Hear = std::function<void(const std::string&)>;

  void add(const std::string& remark) {
    const std::lock_guard lock(mutex_);
    if (all_.insert(remark).second && hear_) hear_(remark);
  }
  /// Passes on future notes, and those that came before the call.
  void pass_on_to(Hear hear) {
    const std::lock_guard lock(mutex_);
    hear_ = std::move(hear);
    for (const auto& remark : all_) hear_(remark);
  }

 private:
  std::mutex mutex_;
  std::set<std::string> all_;
  Hear hear_;
};

}  // namespace troupe::apps
