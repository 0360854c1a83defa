#include "transport/real_network.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/descriptor.h"
#include "core/threads/event_fd.h"
#include "core/threads/real_env.h"
#include "tests/transport/channel_contract.h"
#include "tests/transport/control_contract.h"
#include "tests/transport/publisher_contract.h"
#include "transport/channels/socket.h"

using namespace troupe;
using namespace troupe::transport;

namespace {

/// Passes bytes on between connections and the addresses that they are meant for.
class Relay {
 public:
  Relay() : thread_([this] { run(); }) {}
  ~Relay() {
    change([this] { is_ending_ = true; });
    thread_.join();
  }
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  std::string way_to(const std::string& address) {
    const std::string tcp = "tcp://";
    const bool is_endpoint = address.starts_with(tcp);
    Way way{is_endpoint ? address.substr(tcp.size()) : address,
            listen_at(tcp_address("127.0.0.1:0").value()).value()};
    const auto here = to_text(address_of(way.listening));
    change([&] { ways_.push_back(std::move(way)); });
    return (is_endpoint ? tcp : "") + here;
  }
  void stop() {
    change([this] { is_stopped_ = true; });
  }
  void cut() {
    change([this] { pairs_.clear(); });
  }

 private:
  struct Way {
    std::string to;
    Descriptor listening;
  };
  /// One direction of a connection.
  struct Pipe {
    int from = -1;
    int to = -1;
    std::string held;  // Read, but not written yet.
  };
  struct Pair {
    Descriptor one, other;
    std::array<Pipe, 2> pipes;
  };

  template <class Change>
  void change(Change change) {
    const std::lock_guard lock(mutex_);
    change();
    changed_.ring();
  }

  void run() {
    for (;;) {
      std::vector<pollfd> items{{changed_.descriptor(), POLLIN, 0}};
      {
        const std::lock_guard lock(mutex_);
        if (is_ending_) return;
        if (!is_stopped_) {
          for (const auto& way : ways_) items.push_back({way.listening.number(), POLLIN, 0});
          for (const auto& pair : pairs_)
            for (const auto& pipe : pair.pipes)
              items.push_back(pipe.held.empty() ? pollfd{pipe.from, POLLIN, 0}
                                                : pollfd{pipe.to, POLLOUT, 0});
        }
      }
      (void)poll(items.data(), items.size(), -1);
      const std::lock_guard lock(mutex_);
      changed_.clear();
      if (is_stopped_) continue;
      for (const auto& way : ways_) accept(way);
      std::erase_if(pairs_,
                    [](Pair& pair) { return !pass_on(pair.pipes[0]) || !pass_on(pair.pipes[1]); });
    }
  }

  void accept(const Way& way) {
    Descriptor one(accept4(way.listening.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!one) return;
    auto other = connect_to(tcp_address(way.to).value(),
                            std::chrono::steady_clock::now() + std::chrono::seconds(30));
    if (!other) return;
    const int a = one.number(), b = other->number();
    pairs_.push_back({std::move(one), std::move(*other), {Pipe{a, b, {}}, Pipe{b, a, {}}}});
  }

  /// Returns false at the end of the connection.
  static bool pass_on(Pipe& pipe) {
    if (pipe.held.empty()) {
      std::array<char, 65536> some;
      const auto came = recv(pipe.from, some.data(), some.size(), MSG_DONTWAIT);
      if (came <= 0) return came < 0 && errno == EAGAIN;
      pipe.held.assign(some.data(), static_cast<std::size_t>(came));
    }
    const auto went =
        send(pipe.to, pipe.held.data(), pipe.held.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (went < 0) return errno == EAGAIN;
    pipe.held.erase(0, static_cast<std::size_t>(went));
    return true;
  }

  EventFd changed_;
  std::mutex mutex_;
  bool is_ending_ = false;
  bool is_stopped_ = false;
  std::list<Way> ways_;
  std::list<Pair> pairs_;
  std::thread thread_;
};

class RealNetworkUnderTest final : public NetworkUnderTest {
 public:
  Network& network(int process) override { return networks_.at(static_cast<std::size_t>(process)); }
  Env& env(int) override { return env_; }
  bool run_until(const std::function<bool()>& condition) override {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    for (; !condition(); std::this_thread::sleep_for(std::chrono::microseconds(100)))
      if (std::chrono::steady_clock::now() > end) return false;
    return true;
  }
  std::string way_to(const std::string& address) override { return relay_.way_to(address); }
  void stop_ways() override { relay_.stop(); }
  void cut_ways() override { relay_.cut(); }

 private:
  RealEnv env_;
  std::array<RealNetwork, 3> networks_;
  Relay relay_;
};

}  // namespace

TEST_CASE("the real network keeps the contract of control sockets", "[transport]") {
  RealNetworkUnderTest under_test;
  check_control_contract(under_test);
}

TEST_CASE("the real network keeps the contract of publishers", "[transport]") {
  RealNetworkUnderTest under_test;
  check_publisher_contract(under_test);
}

TEST_CASE("the real network keeps the contract of channels over TCP", "[transport]") {
  RealNetworkUnderTest under_test;
  check_channel_contract(under_test, "127.0.0.1:0", "");
}

TEST_CASE("the real network keeps the contract of channels in shared memory", "[transport]") {
  RealNetworkUnderTest under_test;
  check_channel_contract(under_test, shared_memory, shared_memory);
}

TEST_CASE("connecting to a door that does not answer fails in time", "[transport]") {
  RealNetworkUnderTest under_test;
  check_silent_door(under_test);
}

TEST_CASE("an address of shared memory is never taken for a TCP address", "[transport]") {
  RealNetworkUnderTest under_test;
  const auto loop = under_test.env(0).make_loop({"test"});
  const auto door = under_test.network(0).open_door("127.0.0.1:0", {});
  REQUIRE(door);
  MemoryPool memory;
  Noted<bool> made;
  for (const auto& to : {shared_memory + (*door)->address(), std::string("shm:127.0.0.1:1")})
    under_test.network(1).connect(
        to, {.epoch = {}, .token = {}, .bound = {4096, 8}, .memory = &memory, .on_end = {}}, *loop,
        [&](const Result<std::unique_ptr<Sender>>& sender) { made.add(sender.ok()); });
  const bool came = under_test.run_until([&] { return made.size() == 2; });
  REQUIRE(came);
  CHECK(made.all() == std::vector<bool>{false, false});
  CHECK((*door)->counters().unknown_token == 0);
}
