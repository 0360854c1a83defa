#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "tests/sim/talk.h"
#include "transport/channels/door.h"

using namespace troupe;
using namespace troupe::simulation;
using namespace troupe::transport;
using namespace std::chrono_literals;

namespace {

constexpr Epoch epoch{{0x1234, 0x5678}, 7};
constexpr Token token{0x0123456789abcdef};
constexpr Bound bound{1 << 20, 64};

/// A receiver with its door.
class Taker {
 public:
  struct Came {
    std::vector<std::uint64_t> numbers;
    std::vector<ChannelEnd::Why> ends;
  };

  Taker(WiredProcess& process, Came& came, const std::string& at) : came_(came) {
    auto opened = process.network->open_door(at, {.epoch = epoch});
    REQUIRE(opened);
    door_ = std::move(*opened);
    receiver_ = door_->expect(
        token, {.bound = bound,
                .memory = &memory_,
                .listener = {[this](Parcel parcel) {
                               came_.numbers.push_back(static_cast<std::uint64_t>(
                                   parcel.tensors[0].numbers<std::int64_t>()[0]));
                               if (on_parcel) on_parcel(came_.numbers.back());
                             },
                             [this](const ChannelEnd& end) { came_.ends.push_back(end.why); }}});
  }

  std::string address() const { return door_->address(); }
  void drop_receiver() { receiver_.reset(); }

  std::function<void(std::uint64_t)> on_parcel;

 private:
  Came& came_;
  MemoryPool memory_;
  std::unique_ptr<Door> door_;
  std::unique_ptr<Receiver> receiver_;
};

/// A sender that connects at once.
class Giver {
 public:
  struct Came {
    std::vector<ChannelEnd::Why> ends;
    std::vector<std::string> refused;
  };

  Giver(WiredProcess& process, Came& came, const std::string& to)
      : came_(came), loop_(process.env->make_loop({"giver"})) {
    process.network->connect(
        to,
        {.epoch = epoch,
         .token = token,
         .bound = bound,
         .memory = &memory_,
         .on_end = [this](const ChannelEnd& end) { came_.ends.push_back(end.why); }},
        *loop_, [this](Result<std::unique_ptr<Sender>> made) {
          if (made)
            sender_ = std::move(*made);
          else
            came_.refused.push_back(made.error().text);
        });
  }

  bool has_sender() const { return sender_ != nullptr; }
  Status give() {
    Tensor tensor = sender_->lend({1}, DType::i64);
    tensor.data<std::int64_t>()[0] = static_cast<std::int64_t>(++given_);
    return sender_->send({}, {&tensor, 1});
  }
  void drop_sender() { sender_.reset(); }

 private:
  Came& came_;
  MemoryPool memory_;
  std::uint64_t given_ = 0;
  std::unique_ptr<Loop> loop_;
  std::unique_ptr<Sender> sender_;
};

/// Two machines with a process each.
struct TwoMachines {
  explicit TwoMachines(std::uint64_t seed) : scheduler({.seed = seed}), wires(scheduler) {}

  bool run_until(const std::function<bool()>& condition, Scheduler::Duration most = 60s) {
    return scheduler.run_until(condition, scheduler.now() + most) == Scheduler::Stopped::done;
  }
  void run_for(Scheduler::Duration time) {
    bool is_over = false;
    scheduler.after(clock, time, [&] { is_over = true; });
    REQUIRE(run_until([&] { return is_over; }, time));
  }
  /// Returns how long it takes until the condition holds.
  Scheduler::Duration time_until(const std::function<bool()>& condition) {
    const auto begin = scheduler.now();
    REQUIRE(run_until(condition));
    return scheduler.now() - begin;
  }

  Scheduler scheduler;
  QueueId clock = scheduler.add_queue(Scheduler::world, "clock");
  Wires wires;
  MachineId alpha = wires.add_machine("alpha"), beta = wires.add_machine("beta");
  std::map<std::uint64_t, Heard> at_server;
  Heard at_client;
  Taker::Came taken;
  Giver::Came given;
  WiredProcess one{scheduler, wires, alpha, "one"};
  WiredProcess other{scheduler, wires, beta, "other"};
};

/// A server on alpha, and a client on beta that has said hello.
struct Talking : TwoMachines {
  explicit Talking(std::uint64_t seed) : TwoMachines(seed) {
    REQUIRE(run_until([this] { return at_client.lives == 1 && at_server.size() == 1; }));
    run_for(10ms);
  }
  Heard& heard_of_client() { return at_server.begin()->second; }

  TalkingServer& server = one.make<TalkingServer>(one, at_server, "tcp://10.0.0.1:4711");
  TalkingClient& client = other.make<TalkingClient>(other, at_client, "tcp://alpha:4711");
};

/// A taker on alpha, and a giver on beta that is connected to it.
struct Giving : TwoMachines {
  explicit Giving(std::uint64_t seed) : TwoMachines(seed) {
    REQUIRE(run_until([this] { return giver.has_sender(); }));
  }
  void give(int count) {
    for (int i = 0; i < count; ++i) REQUIRE(giver.give());
  }

  Taker& taker = one.make<Taker>(one, taken, "10.0.0.1:0");
  Giver& giver = other.make<Giver>(other, given, taker.address());
};

const auto closely = 20ms;

}  // namespace

TEST_CASE("the connections of a killed process end at once, after what came", "[sim]") {
  const auto seed = GENERATE(range(std::uint64_t{0}, std::uint64_t{20}));
  Talking talking(seed);
  for (int i = 0; i < 20; ++i) talking.client.say();
  talking.scheduler.kill(talking.other.id);
  CHECK(talking.time_until([&] { return talking.heard_of_client().gone == 1; }) < closely);
  const auto& numbers = talking.heard_of_client().numbers;
  CHECK(numbers == numbers_up_to(numbers.size()));
  CHECK(talking.at_client.gone == 0);
  talking.run_for(1s);
  CHECK(talking.at_client.gone == 0);
  CHECK(talking.wires.open_ends() == 0);
}

TEST_CASE("clients of a killed server dial the next one", "[sim]") {
  const auto seed = GENERATE(range(std::uint64_t{0}, std::uint64_t{20}));
  Talking talking(seed);
  talking.scheduler.kill(talking.one.id);
  CHECK(talking.time_until([&] { return talking.at_client.gone == 1; }) < closely);
  talking.run_for(1s);
  CHECK(talking.at_client.lives == 1);
  std::map<std::uint64_t, Heard> at_next;
  {
    WiredProcess next(talking.scheduler, talking.wires, talking.alpha, "next");
    next.make<TalkingServer>(next, at_next, "tcp://10.0.0.1:4711");
    CHECK(talking.run_until([&] { return at_next.size() == 1; }));
    CHECK(talking.at_client.lives == 2);
  }
}

TEST_CASE("a machine without power is only found silent", "[sim]") {
  const auto seed = GENERATE(range(std::uint64_t{0}, std::uint64_t{20}));
  Talking talking(seed);
  talking.wires.fail(talking.beta);
  talking.scheduler.kill(talking.other.id);
  const auto time = talking.time_until([&] { return talking.heard_of_client().gone == 1; });
  CHECK(time >= short_patience().silence - closely);
  CHECK(time <= short_patience().silence + short_patience().ask_every);
  CHECK(talking.wires.open_ends() == 0);
}

TEST_CASE("a connection to a life of a machine before ends when it has started again", "[sim]") {
  Talking talking(1);
  talking.wires.fail(talking.alpha);
  talking.scheduler.kill(talking.one.id);
  talking.run_for(100ms);
  CHECK(talking.at_client.gone == 0);
  talking.wires.restart(talking.alpha);
  CHECK(talking.run_until([&] { return talking.at_client.gone == 1; }, 1100ms));
}

TEST_CASE("a process that is frozen for long is silent, and one for a moment is not", "[sim]") {
  const auto seed = GENERATE(range(std::uint64_t{0}, std::uint64_t{20}));
  Talking talking(seed);
  talking.scheduler.freeze(talking.other.id);
  talking.server.say();
  talking.run_for(300ms);
  CHECK(talking.at_client.numbers.empty());
  talking.scheduler.thaw(talking.other.id);
  talking.run_for(3s);
  CHECK(talking.at_client.numbers == numbers_up_to(1));
  CHECK(talking.at_client.gone + talking.heard_of_client().gone == 0);

  talking.scheduler.freeze(talking.other.id);
  const auto time = talking.time_until([&] { return talking.heard_of_client().gone == 1; });
  CHECK(time >= short_patience().silence);
  CHECK(time <= short_patience().silence + short_patience().ask_every + closely);
  CHECK(talking.at_client.gone == 0);
  talking.scheduler.thaw(talking.other.id);
  CHECK(talking.run_until([&] { return talking.at_client.lives == 2; }));
}

TEST_CASE("one way that is cut silences one end, or both if it must hear answers", "[sim]") {
  const auto seed = GENERATE(range(std::uint64_t{0}, std::uint64_t{10}));
  SECTION("to the server") {
    Talking talking(seed);
    talking.wires.cut(talking.beta, talking.alpha, Wires::Ways::one);
    CHECK(talking.wires.is_cut(talking.beta, talking.alpha));
    CHECK_FALSE(talking.wires.is_cut(talking.alpha, talking.beta));
    CHECK(talking.run_until(
        [&] { return talking.heard_of_client().gone == 1 && talking.at_client.gone == 1; }, 1s));
  }
  SECTION("to the client") {
    Talking talking(seed);
    talking.wires.cut(talking.alpha, talking.beta, Wires::Ways::one);
    CHECK(talking.run_until([&] { return talking.at_client.gone == 1; }, 1s));
    // The server learns it from the client.
    CHECK(talking.run_until([&] { return talking.heard_of_client().gone == 1; }, 1s));
  }
  SECTION("for a moment") {
    Talking talking(seed);
    talking.wires.cut(talking.alpha, talking.beta, Wires::Ways::both, 300ms);
    for (int i = 0; i < 5; ++i) talking.client.say();
    talking.run_for(290ms);
    CHECK(talking.heard_of_client().numbers.empty());
    CHECK(talking.run_until([&] { return talking.heard_of_client().numbers == numbers_up_to(5); },
                            1s));
    talking.run_for(2s);
    CHECK(talking.at_client.lives == 1);
  }
}

TEST_CASE("slow ways keep the order of a connection", "[sim]") {
  Talking talking(3);
  talking.wires.slow_down(talking.alpha, talking.beta, 400ms, 1s);
  for (int i = 0; i < 50; ++i) talking.client.say();
  talking.run_for(50ms);
  CHECK(talking.heard_of_client().numbers.size() < 50);
  CHECK(talking.run_until([&] { return talking.heard_of_client().numbers.size() == 50; }));
  CHECK(talking.heard_of_client().numbers == numbers_up_to(50));
  CHECK(talking.at_client.gone == 0);
}

TEST_CASE("a way that is slower than a silence may last ends a connection", "[sim]") {
  const auto seed = GENERATE(range(std::uint64_t{0}, std::uint64_t{10}));
  Talking talking(seed);
  talking.wires.slow_down(talking.alpha, talking.beta, 10s, 2s);
  for (int i = 0; i < 50; ++i) talking.client.say();
  CHECK(talking.run_until([&] { return talking.heard_of_client().gone == 1; }, 10s));
  CHECK(talking.run_until([&] { return talking.heard_of_client().numbers.size() == 50; }));
  CHECK(talking.heard_of_client().numbers == numbers_up_to(50));
}

TEST_CASE("a receiver hears of a killed sender at once, after the parcels that came", "[sim]") {
  const auto seed = GENERATE(range(std::uint64_t{0}, std::uint64_t{20}));
  Giving giving(seed);
  giving.give(10);
  giving.scheduler.kill(giving.other.id);
  CHECK(giving.time_until([&] { return giving.taken.ends.size() == 1; }) < closely);
  CHECK(giving.taken.ends[0] == ChannelEnd::Why::lost);
  CHECK(giving.taken.numbers == numbers_up_to(giving.taken.numbers.size()));
  CHECK(giving.given.ends.empty());
}

TEST_CASE("a sender hears of a killed receiver at once, and of a dropped one that it closed",
          "[sim]") {
  const auto seed = GENERATE(range(std::uint64_t{0}, std::uint64_t{20}));
  Giving giving(seed);
  SECTION("killed") {
    giving.scheduler.kill(giving.one.id);
    CHECK(giving.time_until([&] { return giving.given.ends.size() == 1; }) < closely);
    CHECK(giving.given.ends[0] == ChannelEnd::Why::lost);
  }
  SECTION("dropped") {
    giving.taker.drop_receiver();
    CHECK(giving.time_until([&] { return giving.given.ends.size() == 1; }) < closely);
    CHECK(giving.given.ends[0] == ChannelEnd::Why::closed);
  }
  CHECK(giving.taken.ends.empty());
  CHECK_FALSE(giving.giver.give());
}

TEST_CASE("a channel bears a frozen process and a short cut, but no long one", "[sim]") {
  const auto seed = GENERATE(range(std::uint64_t{0}, std::uint64_t{20}));
  Giving giving(seed);
  giving.scheduler.freeze(giving.one.id);
  giving.give(10);
  giving.run_for(30s);
  CHECK(giving.taken.numbers.empty());
  giving.scheduler.thaw(giving.one.id);
  giving.wires.cut(giving.alpha, giving.beta, Wires::Ways::both, 1s);
  giving.give(10);
  giving.run_for(2s);
  CHECK(giving.taken.numbers == numbers_up_to(20));
  CHECK(giving.given.ends.empty());
  giving.wires.cut(giving.alpha, giving.beta, Wires::Ways::one);
  giving.give(10);
  CHECK(giving.time_until(
            [&] { return giving.given.ends.size() == 1 && giving.taken.ends.size() == 1; }) < 4s);
  CHECK(giving.given.ends[0] == ChannelEnd::Why::lost);
  CHECK(giving.taken.ends[0] == ChannelEnd::Why::lost);
  CHECK(giving.taken.numbers.size() <= 30);
}

TEST_CASE("a process may end itself while it takes a parcel", "[sim]") {
  Giving giving(1);
  giving.taker.on_parcel = [&](std::uint64_t number) {
    if (number == 3) giving.one.env->crash("the test says so");
  };
  giving.give(10);
  CHECK(giving.run_until([&] { return giving.given.ends.size() == 1; }));
  CHECK(giving.taken.numbers == numbers_up_to(3));
  CHECK(giving.taken.ends.empty());
}

TEST_CASE("a channel that ends amid its parcels has given the first ones", "[sim]") {
  const auto seed = GENERATE(range(std::uint64_t{0}, std::uint64_t{20}));
  Giving giving(seed);
  giving.give(10);
  giving.wires.end_between(giving.alpha, giving.beta);
  CHECK(giving.run_until(
      [&] { return giving.given.ends.size() == 1 && giving.taken.ends.size() == 1; }));
  CHECK(giving.taken.ends[0] == ChannelEnd::Why::lost);
  CHECK(giving.given.ends[0] == ChannelEnd::Why::lost);
  CHECK(giving.taken.numbers == numbers_up_to(giving.taken.numbers.size()));
}

TEST_CASE("a machine that refuses connections refuses senders and clients", "[sim]") {
  TwoMachines two(1);
  auto& taker = two.one.make<Taker>(two.one, two.taken, "10.0.0.1:0");
  two.wires.refuse(two.alpha, 1s);
  two.other.make<Giver>(two.other, two.given, taker.address());
  CHECK(two.run_until([&] { return two.given.refused.size() == 1; }, closely));
  CHECK(two.given.refused[0] == taker.address() + ": cannot connect: Connection refused");
  two.run_for(1s);
  auto& giver = two.other.make<Giver>(two.other, two.given, taker.address());
  CHECK(two.run_until([&] { return giver.has_sender(); }, closely));
}

TEST_CASE("senders of one loop connect one after another", "[sim]") {
  TwoMachines two(1);
  auto& taker = two.one.make<Taker>(two.one, two.taken, "10.0.0.1:0");
  two.scheduler.freeze(two.one.id);
  const auto loop = two.other.env->make_loop({"dials"});
  MemoryPool memory;
  std::vector<Scheduler::Duration> refused;
  const auto begin = two.scheduler.now();
  for (int i = 0; i < 3; ++i)
    two.other.network->connect(taker.address(),
                               {.epoch = epoch,
                                .token = token,
                                .bound = bound,
                                .memory = &memory,
                                .on_end = {},
                                .patience = 100ms},
                               *loop, [&](const Result<std::unique_ptr<Sender>>& made) {
                                 CHECK_FALSE(made);
                                 refused.push_back(two.scheduler.now() - begin);
                               });
  REQUIRE(two.run_until([&] { return refused.size() == 3; }));
  CHECK(refused == std::vector<Scheduler::Duration>{100ms, 200ms, 300ms});
}

TEST_CASE("a sender that is killed while it connects is called nothing", "[sim]") {
  const auto seed = GENERATE(range(std::uint64_t{0}, std::uint64_t{20}));
  TwoMachines two(seed);
  auto& taker = two.one.make<Taker>(two.one, two.taken, "10.0.0.1:0");
  two.other.make<Giver>(two.other, two.given, taker.address());
  const auto events = two.scheduler.events() + seed % 5;
  (void)two.run_until([&] { return two.scheduler.events() >= events; });
  two.scheduler.kill(two.other.id);
  two.run_for(10s);
  CHECK(two.given.refused.empty());
  CHECK(two.given.ends.empty());
  CHECK(two.wires.open_ends() == 0);
}

TEST_CASE("a subscriber hears events in order and knows how many it has missed", "[sim]") {
  const auto seed = GENERATE(range(std::uint64_t{0}, std::uint64_t{30}));
  TwoMachines two(seed);
  PublisherOptions options;
  options.endpoint = "tcp://*:4712";
  options.link = short_patience();
  const auto publisher = two.one.network->open_publisher(std::move(options));
  REQUIRE(publisher);
  std::vector<std::uint64_t> heard;
  std::uint64_t missed = 0;
  int connections = 0;
  SubscriberEvents events;
  events.connected = [&] { ++connections; };
  events.event = [&](const Message& event) { heard.push_back(event.seq); };
  events.missed = [&](const std::string&, std::uint64_t count) { missed += count; };
  DialOptions dial;
  dial.endpoint = "tcp://alpha:4712";
  dial.link = short_patience();
  const auto loop = two.other.env->make_loop({"listener"});
  const auto subscriber = two.other.network->subscribe(dial, "gpt/", std::move(events), *loop);
  REQUIRE(subscriber);
  REQUIRE(two.run_until([&] { return connections == 1; }));
  for (int i = 0; i < 200; ++i) {
    Message event;
    event.type = "step";
    event.run = "gpt";
    REQUIRE((*publisher)->publish(std::move(event)));
    if (i % 50 == 25) two.wires.end_between(two.alpha, two.beta);
    two.run_for(5ms);
  }
  two.run_for(1s);
  CHECK(connections == 5);
  CHECK(std::is_sorted(heard.begin(), heard.end()));
  CHECK(missed > 0);
  CHECK(heard.front() == 1);
  CHECK(heard.back() == 200);
  CHECK(heard.size() + missed == 200);
}

TEST_CASE("a history of a simulated network names faults and messages", "[sim]") {
  Scheduler scheduler({.seed = 1, .history = Scheduler::History::told});
  Wires wires(scheduler);
  const auto alpha = wires.add_machine("alpha"), beta = wires.add_machine("beta");
  std::map<std::uint64_t, Heard> at_server;
  Heard at_client;
  WiredProcess one(scheduler, wires, alpha, "one"), other(scheduler, wires, beta, "other");
  one.make<TalkingServer>(one, at_server, "tcp://*:4711");
  auto& client = other.make<TalkingClient>(other, at_client, "tcp://alpha:4711");
  client.say();
  wires.cut(alpha, beta, Wires::Ways::one, 10ms);
  REQUIRE(scheduler.run_until([&] { return at_server.size() == 1 && at_client.lives == 1; },
                              Scheduler::start + 1s) == Scheduler::Stopped::done);
  REQUIRE(scheduler.run_until([&] { return at_server.begin()->second.numbers.size() == 1; },
                              Scheduler::start + 1s) == Scheduler::Stopped::done);
  const auto& lines = scheduler.history();
  const auto has = [&](const std::string& end) {
    return std::any_of(lines.begin(), lines.end(),
                       [&](const std::string& line) { return line.ends_with(end); });
  };
  CHECK(has("fault         nothing passes from alpha to beta for 10 ms"));
  CHECK(std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
    return line.find("one           hears prepared 1 on connection") != std::string::npos;
  }));
}
