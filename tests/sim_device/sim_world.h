#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "transport/links/link.h"

/// Simulated devices and links, computed by the cores. Code based on link.h is tested with them
/// without a GPU, including the traps of real devices.
namespace sim_device {

/// The byte that fills the memory of an aborted receive.
constexpr std::byte garbage{0xA5};

struct Device;

/// An entry of a device's queue. It blocks all later entries until it is done.
struct Item {
  enum class Kind : std::uint8_t { work, mark, wait, transfer };

  Kind kind = Kind::work;
  std::function<void()> work{};
  std::shared_ptr<bool> event{};  // Set by a mark, awaited by a wait.
  // Memory that a transfer moves, or that work uses.
  std::vector<troupe::transport::Piece> pieces{};
  bool met = false;  // For a transfer: the other end has had its part.
};

/// One end of a link, with its queue.
struct End {
  Device* device = nullptr;
  std::size_t member = 0;  // 0 sends and 1 receives, unless the link sums.
  std::uint64_t bond = 0;
  troupe::transport::LinkReport report;
  std::deque<Item> queue;
  std::deque<Item> posting;  // Not in the queue yet.
  // Data that has left the end and was not received yet.
  std::deque<std::vector<std::byte>> on_the_way;
  std::uint64_t posted = 0;
  bool aborted = false;
};

/// All ends of a link.
struct Bond {
  std::vector<End*> ends;  // Indexed by member.
  bool adds = false;
  bool connected = false;
};

/// A queue of work, the ends of links, and the poison word.
struct Device {
  std::deque<Item> work;
  std::vector<std::unique_ptr<End>> ends;
  bool alive = true;
  bool blocked = false;  // The device does nothing.
  // The event that its queue waits for.
  std::shared_ptr<bool> going_on = std::make_shared<bool>(true);
  bool ending = false;  // Links that were given back are aborted, but not gone yet.
  std::uint64_t poison_word = 0;
  std::optional<std::thread::id> caller;
};

/// A simulation that makes progress only in step() and during calls of a fabric. The seed decides
/// which of the possible events happens next, so equal seeds give equal runs. Any thread may call
/// it, but not the work of a device.
class SimWorld {
 public:
  explicit SimWorld(std::uint64_t seed) : random_(seed), most_meanwhile_(random_() % 4) {}

  /// Whether an end is told that the other end's device has died. NCCL often cannot tell.
  enum class Deaths : std::uint8_t { silent, told };
  void set_deaths(Deaths deaths) { deaths_ = deaths; }

  int add_device();
  /// The world outlives the fabric.
  std::unique_ptr<troupe::transport::Fabric> fabric(int device);

  /// Appends work to the device's queue. Links must not use the same memory before the work is
  /// done.
  void give(int device, std::function<void()> work,
            std::vector<troupe::transport::Piece> uses = {});
  /// Makes all later work of the device wait for go_on(), as behind a long kernel. Its links
  /// continue.
  void hold_up(int device);
  void go_on(int device);
  /// Stops the device and its links, like an endless kernel that leaves no room for others.
  void block(int device);
  /// Stops the device, as if its process had died.
  void kill(int device);

  /// Performs one event. Returns false if nothing can happen.
  bool step();

  /// Returns whether the device has done all its work.
  bool idle(int device) const;
  /// Returns whether a transfer is first in one of its queues, or the device is blocked.
  bool occupied(int device) const;
  /// Returns descriptions of all forbidden actions so far.
  std::set<std::string> misuses() const;
  /// Returns the most operations that one end ever had at once.
  std::size_t most_under_way() const;
  /// Returns how many operations have met.
  std::uint64_t transfers() const;

 private:
  friend class SimFabric;
  friend class SimLink;
  using Lock = std::unique_lock<std::mutex>;
  /// A possible event of a queue, an end or a device.
  struct Step {
    void (SimWorld::*act)(const Step&);
    Device* device;
    End* end;                 // Null for the device's own queue.
    std::deque<Item>* queue;  // Null for an event without a queue.
  };

  Device& at(int device) { return *devices_[static_cast<std::size_t>(device)]; }
  const Device& at(int device) const { return *devices_[static_cast<std::size_t>(device)]; }
  bool step_once();
  /// Lets devices make progress while their host calls.
  void meanwhile(Device& caller);
  void long_meanwhile(Device& caller);
  void note_misuse(const std::string& what) { misuses_.insert(what); }

  void find_steps();
  void find_step_of_queue(Device& device, End* end, std::deque<Item>& queue);
  void find_step_of_transfer(End& end);
  void find_step_of_sum(End& end);
  void find_steps_of_end(End& end);
  /// Returns whether no transfer occupies the device. Only then does an operation end that waits
  /// for all queues.
  bool quiet(const Device& device) const;
  static bool has_yet_to_use(const Device& device, const troupe::transport::Piece& piece);
  /// Returns the other ends if all of them exist, live and are not aborted; else none.
  std::vector<End*> others(const End& end);

  void do_item(const Step& step);
  void leave_aborted(const Step& step);
  void send_ahead(const Step& step);
  void take_sent(const Step& step);
  void meet(const Step& step);
  void add_up(const Step& step);
  void leave(const Step& step);
  void connect(const Step& step);
  void issue(const Step& step);
  void become_ready(const Step& step);
  void hear_of_death(const Step& step);
  void finish_ending(const Step& step);

  mutable std::mutex mutex_;
  std::mt19937_64 random_;
  std::uint64_t most_meanwhile_;  // Small for devices that are slow compared with their hosts.
  Deaths deaths_ = Deaths::silent;
  std::vector<std::unique_ptr<Device>> devices_;
  std::map<std::uint64_t, Bond> bonds_;
  std::vector<Step> steps_;
  std::set<std::string> misuses_;
  std::size_t most_under_way_ = 0;
  std::uint64_t transfers_ = 0;
};

}  // namespace sim_device
