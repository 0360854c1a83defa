#pragma once

#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <utility>

namespace troupe::apps {

/// What devices say of how they compute, from any thread: it is passed on, the same once.
class DeviceNotes {
 public:
  using Hear = std::function<void(const std::string&)>;

  void add(const std::string& remark) {
    const std::lock_guard lock(mutex_);
    if (all_.insert(remark).second && hear_) hear_(remark);
  }
  /// What has been said by now, too.
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
