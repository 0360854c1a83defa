#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "actors/nodes/node.h"
#include "core/threads/real_env.h"

namespace troupe::bench {

/// Many nodes in this process that dial a head and speak the nodes' whole protocol, but have no
/// devices: they refuse every part in a run.
class Crowd {
 public:
  /// Returns an error with the number of accepted nodes if not all are accepted in time.
  static Result<std::unique_ptr<Crowd>> gather(const std::string& endpoint, int count,
                                               std::chrono::seconds patience);

 private:
  void heard(const std::string& line);

  RealEnv env_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t welcome_ = 0;
  std::string refusal_;
  std::vector<std::unique_ptr<actors::Node>> nodes_;
};

}  // namespace troupe::bench
