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
  /// Receives each reading. It must not wait. Neither callback is called after the watch ends.
  std::function<void(const std::vector<actors::GpuReading>&)> tell;
  // Receives once the reason why the GPUs cannot be read.
  std::function<void(const std::string&)> say;
};

/// Reads this machine's GPUs periodically on its own thread, since a driver may be slow and a
/// faulty one may never answer. The thread ends at once if the machine has no GPUs.
class GpuWatch {
 public:
  explicit GpuWatch(GpuWatchOptions options);
  /// Does not wait long for a driver that does not answer.
  ~GpuWatch();
  GpuWatch(const GpuWatch&) = delete;
  GpuWatch& operator=(const GpuWatch&) = delete;

 private:
  struct Shared;
  static void watch(Shared& shared);

  std::shared_ptr<Shared> shared_;  // Shared with the thread, which may outlive this object.
  std::future<void> ended_;
  std::thread thread_;
};

}  // namespace troupe::apps
