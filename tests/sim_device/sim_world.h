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

/// Devices and the links between them, played by the cores: so what is built upon link.h is tested
/// where there is no GPU, with all the traps that stand there.
namespace sim_device {

/// What every byte is where an aborted receive has left garbage.
constexpr std::byte garbage{0xA5};

struct Device;

/// What stands in a queue of a device. One that cannot be done holds up all behind it.
struct Item {
  enum class Kind : std::uint8_t { work, mark, wait, transfer };

  Kind kind = Kind::work;
  std::function<void()> work{};
  std::shared_ptr<bool> event{};                   // Which a mark sets, and a wait waits for.
  std::vector<troupe::transport::Piece> pieces{};  // What a transfer moves, or work uses.
  bool met = false;                                // A transfer: the other end has had its part.
};

/// One end of a link, with its queue.
struct End {
  Device* device = nullptr;
  std::size_t member = 0;  // 0 sends and 1 receives, where it does not add up.
  std::uint64_t bond = 0;
  troupe::transport::LinkReport report;
  std::deque<Item> queue;
  std::deque<Item> posting;                       // Not in the queue yet.
  std::deque<std::vector<std::byte>> on_the_way;  // What has left it, and nobody has taken.
  std::uint64_t posted = 0;
  bool aborted = false;
};

/// All ends of a link.
struct Bond {
  std::vector<End*> ends;  // By member.
  bool adds = false;
  bool connected = false;
};

/// A queue of work, the ends of links, and the word of poison.
struct Device {
  std::deque<Item> work;
  std::vector<std::unique_ptr<End>> ends;
  bool alive = true;
  bool blocked = false;                                           // It does nothing.
  std::shared_ptr<bool> going_on = std::make_shared<bool>(true);  // What holds up its queue.
  bool ending = false;  // What was given back is aborted, and not gone yet.
  std::uint64_t poison_word = 0;
  std::optional<std::thread::id> caller;
};

/// Nothing moves but in step(), and while a fabric is called. Which of all things that may happen
/// next does is drawn; with the same draws all is the same. Any thread; what a device is given to
/// do must not call it.
class SimWorld {
 public:
  explicit SimWorld(std::uint64_t seed) : random_(seed), most_meanwhile_(random_() % 4) {}

  /// Whether an end is told when the other one's device has died. NCCL often cannot tell.
  enum class Deaths : std::uint8_t { silent, told };
  void set_deaths(Deaths deaths) { deaths_ = deaths; }

  int add_device();
  /// The world outlives it.
  std::unique_ptr<troupe::transport::Fabric> fabric(int device);

  /// Puts work behind all that the device was given. No link may be given what it uses before that
  /// is done.
  void give(int device, std::function<void()> work,
            std::vector<troupe::transport::Piece> uses = {});
  /// What it is given from now on to do waits until it goes on, as behind a long kernel. Its links
  /// do not.
  void hold_up(int device);
  void go_on(int device);
  /// Nothing of it moves any more, as with a kernel without end that leaves no room for others.
  void block(int device);
  /// It does nothing any more, as one whose process has died.
  void kill(int device);

  /// False where nothing can happen.
  bool step();

  /// Whether it has done all that it was given.
  bool idle(int device) const;
  /// Whether a transfer stands first in one of its queues, or it is blocked.
  bool occupied(int device) const;
  /// What was done that must not be.
  std::set<std::string> misuses() const;
  /// The most operations that one end ever had at once.
  std::size_t most_under_way() const;
  /// How many operations have met.
  std::uint64_t transfers() const;

 private:
  friend class SimFabric;
  friend class SimLink;
  using Lock = std::unique_lock<std::mutex>;
  /// Something that may happen: to a queue, to an end, or to a device.
  struct Step {
    void (SimWorld::*act)(const Step&);
    Device* device;
    End* end;                 // Null where the queue is the device's own.
    std::deque<Item>* queue;  // Null where it is none's.
  };

  Device& at(int device) { return *devices_[static_cast<std::size_t>(device)]; }
  const Device& at(int device) const { return *devices_[static_cast<std::size_t>(device)]; }
  bool step_once();
  /// Devices go on while their host calls.
  void meanwhile(Device& caller);
  void long_meanwhile(Device& caller);
  void note_misuse(const std::string& what) { misuses_.insert(what); }

  void find_steps();
  void find_step_of_queue(Device& device, End* end, std::deque<Item>& queue);
  void find_step_of_transfer(End& end);
  void find_step_of_sum(End& end);
  void find_steps_of_end(End& end);
  /// No transfer occupies the device. What waits for all its queues comes to an end then only.
  bool quiet(const Device& device) const;
  static bool has_yet_to_use(const Device& device, const troupe::transport::Piece& piece);
  /// The other ends, where each of them is there, alive and not aborted; else none.
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
  std::uint64_t most_meanwhile_;  // Some devices are slow, beside their hosts.
  Deaths deaths_ = Deaths::silent;
  std::vector<std::unique_ptr<Device>> devices_;
  std::map<std::uint64_t, Bond> bonds_;
  std::vector<Step> steps_;
  std::set<std::string> misuses_;
  std::size_t most_under_way_ = 0;
  std::uint64_t transfers_ = 0;
};

}  // namespace sim_device
