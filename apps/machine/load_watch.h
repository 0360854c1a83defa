#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "actors/nodes/node_messages.h"

namespace troupe::apps {

/// Reads what is in use of this machine periodically, on a thread of its own.
class LoadWatch {
 public:
  /// `tell` receives each reading. It must not wait.
  explicit LoadWatch(std::function<void(const actors::MachineLoad&)> tell,
                     std::chrono::milliseconds every = std::chrono::seconds(2));
  ~LoadWatch();
  LoadWatch(const LoadWatch&) = delete;
  LoadWatch& operator=(const LoadWatch&) = delete;

 private:
  void watch();

  const std::function<void(const actors::MachineLoad&)> tell_;
  const std::chrono::milliseconds every_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_ending_ = false;
  std::thread thread_;
};

}  // namespace troupe::apps
