#include <atomic>
#include <cstring>
#include <thread>

#include "catch.h"
#include "sim_device/sim_world.h"
#include "transport/channels/local_channel.h"
#include "transport/links/edge_thread.h"
#include "transport/links/edges.h"

using namespace troupe;
using namespace troupe::transport;

namespace {

constexpr std::chrono::seconds wait_limit{120};

/// Runs the simulated devices on a thread of its own.
class DevicesThread {
 public:
  explicit DevicesThread(sim_device::SimWorld& world)
      : thread_([this, &world] {
          while (!stopping_)
            if (!world.step()) std::this_thread::yield();
        }) {}
  ~DevicesThread() {
    stopping_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

/// A process: a device, and the thread that advances its edges.
struct Process {
  explicit Process(sim_device::SimWorld& world) : fabric(world.fabric(world.add_device())) {}

  void begin(std::uint64_t epoch) {
    edges = std::make_unique<Edges>(
        *fabric, EdgesOrder{.epoch = {{1, 2}, epoch},
                            .memory = &pool,
                            .patience = {wait_limit, wait_limit, wait_limit, wait_limit},
                            .wake = [this] { thread.wake(); }});
  }
  bool reaches(Edges::Phase phase) {
    const auto until = std::chrono::steady_clock::now() + wait_limit;
    while (edges->phase() != phase) {
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::yield();
    }
    return true;
  }

  MemoryPool pool;
  std::unique_ptr<Fabric> fabric;
  std::unique_ptr<Edges> edges;
  EdgeThread thread;
};

/// The traffic from a to b and back, until it is aborted.
struct Traffic {
  Traffic(Process& a, Process& b, std::uint64_t number)
      : words(make_local_channel(a.pool, {0, 64}, hearing(*b.edges), {})),
        back(make_local_channel(b.pool, {0, 64}, hearing(*a.edges), {})) {
    constexpr Bound bound{100'000, 4};
    sender = a.edges->open_sender({number, bound, words.sender.get()}, {});
    receiver = b.edges->open_receiver(
        {number, bound, back.sender.get()}, HandedOver::at_end,
        {[this](Parcel parcel) {
           const auto* numbers = parcel.tensors[0].data<std::int32_t>();
           const auto wanted = static_cast<std::int32_t>(arrived);
           if (numbers[0] != wanted || numbers[parcel.tensors[0].count() - 1] != wanted)
             wrong = true;
           ++arrived;
         },
         {}});
  }
  static Listener hearing(Edges& edges) {
    return {[&edges](Parcel parcel) { edges.hear(parcel.head); }, {}};
  }

  /// Sends until a send is refused for good.
  void send_all() {
    for (std::int32_t i = 0;; ++i) {
      auto tensor = sender->lend({1 + i % 300}, DType::i32);
      auto* numbers = tensor.data<std::int32_t>();
      numbers[0] = numbers[i % 300] = i;
      for (;;) {
        const auto sent = sender->send({}, {&tensor, 1});
        if (sent) break;
        if (sent.error().text.find("bound") == std::string::npos) return;
        std::this_thread::yield();
      }
    }
  }

  LocalChannel words, back;
  std::unique_ptr<Sender> sender;
  std::unique_ptr<Receiver> receiver;
  std::atomic<std::uint64_t> arrived{0};
  std::atomic<bool> wrong{false};
};

}  // namespace

TEST_CASE("edges serve several sending threads, and can end meanwhile", "[edges]") {
  sim_device::SimWorld world(1);
  Process a(world), b(world);
  const DevicesThread devices(world);
  for (std::uint64_t epoch = 1; epoch <= 5; ++epoch) {
    a.begin(epoch);
    b.begin(epoch);
    {
      Traffic there(a, b, 0), here(b, a, 1);
      a.thread.drive(*a.edges);
      b.thread.drive(*b.edges);
      a.edges->begin();
      b.edges->begin();
      std::thread one([&] { there.send_all(); });
      std::thread other([&] { here.send_all(); });
      const auto until = std::chrono::steady_clock::now() + wait_limit;
      while ((there.arrived < 200 || here.arrived < 200) &&
             std::chrono::steady_clock::now() < until)
        std::this_thread::yield();
      CHECK(there.arrived >= 200);
      CHECK(here.arrived >= 200);
      b.edges->abort("enough");
      a.edges->abort("enough");
      one.join();
      other.join();
      CHECK(a.reaches(Edges::Phase::over));
      CHECK(b.reaches(Edges::Phase::over));
      CHECK_FALSE(there.wrong);
      CHECK_FALSE(here.wrong);
      a.thread.leave();
      b.thread.leave();
    }
    a.edges.reset();
    b.edges.reset();
    CHECK(a.pool.counters().bytes_in_use == 0);
    CHECK(b.pool.counters().bytes_in_use == 0);
  }
  CHECK(world.misuses().empty());
}
