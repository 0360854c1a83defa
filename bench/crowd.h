#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "actors/nodes/node.h"

namespace troupe::bench {

/// Many nodes in this process that dial a head, with all that a node says and hears, but without
/// devices: who gives one of them a part in a run is told that it cannot.
class Crowd {
 public:
  /// An error where they are not all welcome within the patience; it says how many are.
  static Result<std::unique_ptr<Crowd>> gather(const std::string& endpoint, int count,
                                               std::chrono::seconds patience);

 private:
  void heard(const std::string& line);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t welcome_ = 0;
  std::string refusal_;
  std::vector<std::unique_ptr<actors::Node>> nodes_;
};

}  // namespace troupe::bench
