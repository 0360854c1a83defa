#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "actors/node_messages.h"
#include "core/result.h"
#include "transport/wire.h"

namespace troupe::actors {

/// A node as the head knows it.
struct NodeHere {
  std::uint64_t incarnation = 0;  // Its life: random, never used again.
  std::string name;
  Inventory inventory;
  bool cordoned = false;  // Gets nothing new.
  bool away = false;      // Is not heard now; it may come back. Gets nothing new either.

  /// For a person, who may see several lives of one name: "node alpha (process 4711)".
  std::string title() const {
    return "node " + name + " (process " + std::to_string(inventory.pid) + ")";
  }
};

/// The nodes that are there, in the order in which they came. Any thread.
class NodePool {
 public:
  using Send = std::function<Status(std::uint64_t incarnation, const transport::Message&)>;

  explicit NodePool(Send send) : send_(std::move(send)) {}

  /// With the name that it gets: the one it wants, or that with a number where it is taken.
  NodeHere add(std::uint64_t incarnation, std::string wanted, Inventory inventory);
  /// What was there.
  std::optional<NodeHere> remove(std::uint64_t incarnation);
  bool cordon(const std::string& name, bool cordoned);
  void set_away(std::uint64_t incarnation, bool away);
  std::optional<NodeHere> find(std::uint64_t incarnation) const;

  std::vector<NodeHere> all() const;
  /// Those that may be given something new.
  std::vector<NodeHere> usable() const;
  /// Those that may be used, as soon as there are so many; all that are there where the patience
  /// ends before.
  std::vector<NodeHere> wait_for(int fewest, std::chrono::milliseconds patience,
                                 const std::function<bool()>& cancelled);
  /// Lets those who wait look whether they are cancelled.
  void wake() { changed_.notify_all(); }

  Status send(std::uint64_t incarnation, const transport::Message& message) const {
    return send_(incarnation, message);
  }

 private:
  /// With the lock held.
  std::vector<NodeHere> find_usable() const;

  Send send_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<NodeHere> nodes_;
};

}  // namespace troupe::actors
