#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "actors/nodes/node_messages.h"

namespace troupe::apps {

struct GpuWatchOptions {
  std::chrono::milliseconds every = std::chrono::seconds(2);
  /// Must not wait. Neither is called any more once the watch ends.
  std::function<void(const std::vector<actors::GpuReading>&)> tell;
  std::function<void(const std::string&)> say;  // Why they cannot be read: once.
};

/// Reads this machine's GPUs again and again, on a thread of its own that does nothing else: a
/// driver takes its time, and one that is sick never answers. Where there are none it is soon over.
class GpuWatch {
 public:
  explicit GpuWatch(GpuWatchOptions options);
  /// Does not wait for a driver that does not answer.
  ~GpuWatch();
  GpuWatch(const GpuWatch&) = delete;
  GpuWatch& operator=(const GpuWatch&) = delete;

 private:
  struct Shared;
  static void watch(Shared& shared);

  std::shared_ptr<Shared> shared_;  // With the thread, which may outlive this object.
  std::future<void> ended_;
  std::thread thread_;
};

}  // namespace troupe::apps
