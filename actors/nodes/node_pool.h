#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/decide/detector.h"
#include "actors/nodes/node_messages.h"
#include "core/result.h"
#include "kernels/linear.h"
#include "transport/wire/wire.h"

namespace troupe::actors {

/// A node as the head knows it.
struct NodeHere {
  std::uint64_t incarnation = 0;  // Its life: random, never used again.
  std::string name;
  Inventory inventory;
  bool cordoned = false;  // Gets nothing new.
  bool away = false;      // Is not heard now; it may come back. Gets nothing new either.
  std::string key = {};   // Its public key, by which it dialed; empty for a plain connection.
  std::vector<GpuReading> gpus = {};  // As it has told last,
  Time gpus_told = {};                // and when.

  /// Nothing where that was too long ago to say how they are now.
  std::vector<GpuReading> gpus_at(Time now) const;
  /// For a person, who may see several lives of one name: "node alpha (process 4711)".
  std::string title() const {
    return "node " + name + " (process " + std::to_string(inventory.pid) + ")";
  }
};

/// Why a node is there no more.
struct NodeLoss {
  std::string why;
  bool has_ended = false;  // Its daemon says that its process has.
  int signal = 0;          // That ended it.
};

/// Of a name that a configuration would not know: fp32, which everybody has.
kernels::Precision precision_named(std::string_view name);

/// Whether it has products in this, or in better. Any processor can compute in all; without the
/// instructions it is slow.
bool has(const Inventory& inventory, kernels::Precision precision);

/// Those of them that do not: "beta, gamma: at most fp32"; empty where all do.
std::string who_lacks(kernels::Precision precision, const std::vector<NodeHere>& nodes);

/// The nodes that are there, in the order in which they came. Any thread.
class NodePool {
 public:
  using Send = std::function<Status(std::uint64_t incarnation, const transport::Message&)>;

  /// Hears that a node has said what it must not say.
  using Strike = std::function<void(std::uint64_t incarnation, const std::string& why)>;

  explicit NodePool(
      Send send, Strike strike = [](std::uint64_t, const std::string&) {})
      : send_(std::move(send)), strike_(std::move(strike)) {}

  /// With the name that it gets: the one it wants, or that with a number where it is taken.
  NodeHere add(std::uint64_t incarnation, std::string wanted, Inventory inventory,
               std::string key = {});
  /// What was there.
  std::optional<NodeHere> remove(std::uint64_t incarnation);
  bool cordon(const std::string& name, bool cordoned);
  void set_away(std::uint64_t incarnation, bool away);
  void set_gpus(std::uint64_t incarnation, std::vector<GpuReading> gpus, Time now);
  std::optional<NodeHere> find(std::uint64_t incarnation) const;

  std::vector<NodeHere> all() const;
  /// Those that may be given something new, and have so good products at least.
  std::vector<NodeHere> usable(kernels::Precision least = kernels::Precision::fp32) const;
  /// These, as soon as there are so many; all that are there where the patience ends before.
  std::vector<NodeHere> wait_for(int fewest, kernels::Precision least,
                                 std::chrono::milliseconds patience,
                                 const std::function<bool()>& cancelled);
  /// Lets those who wait look whether they are cancelled.
  void wake();

  Status send(std::uint64_t incarnation, const transport::Message& message) const {
    return send_(incarnation, message);
  }
  void strike(std::uint64_t incarnation, const std::string& why) const {
    strike_(incarnation, why);
  }

 private:
  /// With the lock held.
  std::vector<NodeHere> find_usable(kernels::Precision least) const;

  Send send_;
  Strike strike_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<NodeHere> nodes_;
};

}  // namespace troupe::actors
