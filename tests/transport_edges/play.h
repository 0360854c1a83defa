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

/// A few processes, each with a device, and edges between them; on one thread, with a clock of its
/// own. What happens next is drawn: a device's step, a word that arrives, a process that looks
/// after its edges, a parcel that is sent, numbers that are given to be added up.
namespace edges_play {

constexpr std::chrono::milliseconds patience{1000};

/// So many orders of what happens are drawn.
constexpr std::uint64_t orders(std::uint64_t without_sanitizer) {
  return is_sanitized ? without_sanitizer / 10 : without_sanitizer;
}

/// Whether what a device does with a parcel looks at the poison word first, as it must.
enum class Steps : std::uint8_t { look_at_poison, do_not_look };

struct Layout {
  int devices = 2;
  std::vector<std::pair<int, int>> edges{{0, 1}};
  std::vector<std::vector<int>> sums{};  // Edges that add up: the devices of each.
  std::uint64_t parcels = 6;             // Along each edge, and so many sums.
  troupe::transport::Bound bound{100'000, 4};
  std::size_t places = 2;
  troupe::transport::HandedOver handed_over = troupe::transport::HandedOver::at_issue;
  Steps steps = Steps::look_at_poison;
};

/// As many devices as are drawn, edges in any directions, and perhaps some that add up.
Layout drawn_layout(std::uint64_t seed);

/// What the device at the end of an edge has made of what came, in the epoch.
struct Applied {
  std::uint64_t parcels = 0;
  std::int64_t sum = 0;
};

class Play {
 public:
  Play(std::uint64_t seed, Layout layout);
  ~Play();

  /// All processes begin anew. A dead one has a new process and a new device in its place.
  void begin_epoch(std::uint64_t number);

  /// One thing happens, and a little time passes.
  void step();
  /// False where that is not so after so many.
  bool run_until(const std::function<bool()>& holds, int steps = 100'000);
  void pass(std::chrono::milliseconds time) { now_ += time; }

  void abort(int process) { process_at(process).edges->abort("the test says so"); }
  void abort_all();
  /// The process is gone, with its device.
  void kill(int process);
  /// It no longer looks after its edges; its device goes on.
  void freeze(int process) { process_at(process).frozen = true; }
  void thaw(int process) { process_at(process).frozen = false; }
  /// Its device does nothing any more.
  void block(int process);
  /// All devices do nothing that they are given from now on, before they go on. Their links do.
  void hold_up_all();
  void let_all_go_on();
  /// Words of this kind do not arrive any more.
  void lose(troupe::transport::EdgeWordKind kind) { lost_ = kind; }
  /// What is sent is sent by the test.
  void send_nothing() { sends_ = false; }

  bool all_are(troupe::transport::Edges::Phase phase) const;
  /// So far as the hosts know.
  bool all_heard() const;
  /// And the devices have done with it.
  bool all_arrived() const;
  /// Parcels that were handed over, and of which the devices made nothing.
  std::uint64_t left_out() const;
  /// Whether nothing is held any more, but for what lies in lines of words.
  bool all_given_back() const;
  /// What is not as it must be; empty where all is.
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
  /// One end of an edge that adds up.
  struct SumEnd {
    std::size_t sum = 0;  // In the layout.
    std::size_t member = 0;
    std::uint64_t given = 0;
    std::uint64_t heard = 0;
    std::unique_ptr<troupe::transport::Adder> adder;
    std::optional<troupe::transport::ChannelEnd> end;
  };
  Process& process_at(int process) { return processes_[static_cast<std::size_t>(process)]; }
  Edge& edge(std::size_t number) { return edges_[number]; }
  /// All members of the first sum, then of the next one.
  SumEnd& sum_end(std::size_t number) { return sum_ends_[number]; }
  sim_device::SimWorld& world() { return world_; }
  /// One parcel more along the edge, as send() answers.
  troupe::Status send(std::size_t number);
  /// What this end adds to its next sum, as add() answers.
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
  std::uint64_t slowness_;  // Of devices, beside their hosts.
  troupe::transport::EdgeTime now_{};
  std::uint64_t epoch_ = 0;
  bool sends_ = true;
  std::optional<troupe::transport::EdgeWordKind> lost_;
  std::vector<Process> processes_;
  std::vector<Edge> edges_;
  std::vector<SumEnd> sum_ends_;
  std::vector<std::unique_ptr<Words>> words_;  // From each process to each.
  std::string wrong_;
};

}  // namespace edges_play
