#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/memory/memory_pool.h"
#include "sanitized.h"
#include "sim_device/sim_world.h"
#include "transport/links/edge_word.h"
#include "transport/links/edges.h"

/// A simulation of a few processes, each with a device, and edges between them, on one thread with
/// a simulated clock. The seed decides the next event: a step of a device, the arrival of a word, a
/// process that advances its edges, the sending of a parcel, or an addend for a sum.
namespace edges_play {

constexpr std::chrono::milliseconds patience{1000};

/// Returns how many random event orders to test.
constexpr std::uint64_t orders(std::uint64_t without_sanitizer) {
  return is_sanitized ? without_sanitizer / 10 : without_sanitizer;
}

/// Whether the work of a device on a parcel checks the poison word first, as it must.
enum class Steps : std::uint8_t { look_at_poison, do_not_look };

struct Layout {
  int devices = 2;
  std::vector<std::pair<int, int>> edges{{0, 1}};
  std::vector<std::vector<int>> sums{};  // Edges that sum: the devices of each.
  std::uint64_t parcels = 6;             // The parcels along each edge, and the number of sums.
  troupe::transport::Bound bound{100'000, 4};
  std::size_t places = 2;
  troupe::transport::HandedOver handed_over = troupe::transport::HandedOver::at_issue;
  Steps steps = Steps::look_at_poison;
};

/// Returns a random layout: a number of devices, edges in random directions, and perhaps some that
/// sum.
Layout drawn_layout(std::uint64_t seed);

/// The results of the device at the end of an edge in this epoch.
struct Applied {
  std::uint64_t parcels = 0;
  std::int64_t sum = 0;
};

class Play {
 public:
  Play(std::uint64_t seed, Layout layout);
  ~Play();

  /// Begins an epoch in all processes. A dead process is replaced by a new one with a new device.
  void begin_epoch(std::uint64_t number);

  /// Performs one event, and advances the clock a little.
  void step();
  /// Steps until `holds`. Returns false if that takes too many steps.
  bool run_until(const std::function<bool()>& holds, int steps = 100'000);
  void pass(std::chrono::milliseconds time) { now_ += time; }

  void abort(int process) { process_at(process).edges->abort("the test says so"); }
  void abort_all();
  /// Kills a process and its device.
  void kill(int process);
  /// Stops a process from advancing its edges; its device continues.
  void freeze(int process) { process_at(process).frozen = true; }
  void thaw(int process) { process_at(process).frozen = false; }
  /// Stops the process' device.
  void block(int process);
  /// Makes all later work of the devices wait until let_all_go_on(). Their links continue.
  void hold_up_all();
  void let_all_go_on();
  /// Drops all words of this kind from now on.
  void lose(troupe::transport::EdgeWordKind kind) { lost_ = kind; }
  /// Stops automatic sending, so that only the test sends.
  void send_nothing() { sends_ = false; }

  bool all_are(troupe::transport::Edges::Phase phase) const;
  /// Returns whether everything was received as far as the hosts know.
  bool all_heard() const;
  /// Returns whether everything was received and processed by the devices.
  bool all_arrived() const;
  /// Returns how many parcels were handed over and then dropped by the devices.
  std::uint64_t left_out() const;
  /// Returns whether nothing is held any more, except in queues of words.
  bool all_given_back() const;
  /// Returns what is wrong; empty if everything is right.
  std::string wrong() const;

  struct Process {
    int device = 0;
    bool alive = true;
    bool frozen = false;
    troupe::MemoryPool* pool = nullptr;
    std::unique_ptr<troupe::transport::Fabric> fabric;
    std::unique_ptr<troupe::transport::Edges> edges;
  };
  struct Edge {
    std::uint64_t sent = 0;
    std::uint64_t heard = 0;
    std::unique_ptr<troupe::transport::Sender> sender;
    std::unique_ptr<troupe::transport::Receiver> receiver;
    std::optional<troupe::transport::ChannelEnd> sender_end;
    std::optional<troupe::transport::ChannelEnd> receiver_end;
    std::shared_ptr<Applied> applied = std::make_shared<Applied>();
  };
  /// One end of an edge that sums.
  struct SumEnd {
    std::size_t sum = 0;  // An index into the layout.
    std::size_t member = 0;
    std::uint64_t given = 0;
    std::uint64_t heard = 0;
    std::unique_ptr<troupe::transport::Adder> adder;
    std::optional<troupe::transport::ChannelEnd> end;
  };
  Process& process_at(int process) { return processes_[static_cast<std::size_t>(process)]; }
  Edge& edge(std::size_t number) { return edges_[number]; }
  /// Returns an end by its number: all members of the first sum come first, then those of the next.
  SumEnd& sum_end(std::size_t number) { return sum_ends_[number]; }
  sim_device::SimWorld& world() { return world_; }
  /// Sends one more parcel along the edge. Returns the result of send().
  troupe::Status send(std::size_t number);
  /// Adds this end's part of its next sum. Returns the result of add().
  troupe::Status add(std::size_t number);
  std::uint64_t draw(std::uint64_t below) { return random_() % below; }

 private:
  class Words;

  void start(Process& process);
  void end_epoch();
  troupe::transport::Sender* between(int from, int to);
  int process_of(const SumEnd& end) const;
  void open(std::size_t number);
  void open_sum(std::size_t number);
  void check_sum(std::size_t number, const troupe::Tensor& numbers);
  void send_something();
  void hear(std::size_t number, troupe::transport::Parcel parcel);
  void advance(std::size_t process);
  void carry_word();

  const Layout layout_;
  std::vector<std::unique_ptr<troupe::MemoryPool>> pools_;  // Outlive what devices hold.
  sim_device::SimWorld world_;
  std::mt19937_64 random_;
  std::uint64_t slowness_;  // The slowness of devices compared with their hosts.
  troupe::transport::EdgeTime now_{};
  std::uint64_t epoch_ = 0;
  bool sends_ = true;
  std::optional<troupe::transport::EdgeWordKind> lost_;
  std::vector<Process> processes_;
  std::vector<Edge> edges_;
  std::vector<SumEnd> sum_ends_;
  std::vector<std::unique_ptr<Words>> words_;  // The word queues from each process to each other.
  std::string wrong_;
};

}  // namespace edges_play
