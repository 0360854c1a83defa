#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "actors/node.h"
#include "transport/wire.h"

namespace troupe::actors {

/// A node as the head knows it.
struct NodeHere {
  std::uint64_t peer = 0;  // Its connection: a new one with each life.
  std::string name;
  Inventory inventory;
  bool cordoned = false;  // Gets nothing new.
};

/// The nodes that are there, in the order in which they came. Any thread.
class NodePool {
 public:
  using Send = std::function<Status(std::uint64_t peer, const transport::Message&)>;

  explicit NodePool(Send send) : send_(std::move(send)) {}

  /// With the name that it gets: the one it wants, or that with a number where it is taken.
  NodeHere add(std::uint64_t peer, std::string wanted, Inventory inventory);
  /// Its name, where it was there.
  std::string remove(std::uint64_t peer);
  bool cordon(const std::string& name, bool cordoned);

  std::vector<NodeHere> all() const;
  /// Those that may be used, as soon as there are so many; all that are there where the patience
  /// ends before.
  std::vector<NodeHere> wait_for(int fewest, std::chrono::milliseconds patience,
                                 const std::function<bool()>& cancelled);
  /// Lets those who wait look whether they are cancelled.
  void wake() { changed_.notify_all(); }

  Status send(std::uint64_t peer, const transport::Message& message) const {
    return send_(peer, message);
  }

 private:
  std::vector<NodeHere> usable() const;

  Send send_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<NodeHere> nodes_;
};

}  // namespace troupe::actors
