#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "catch.h"
#include "core/env.h"
#include "core/memory/memory_pool.h"
#include "core/memory/tensor.h"
#include "transport/network.h"

/// Checks what every network promises. The same checks run against real sockets and against a
/// simulated network.
namespace troupe::transport {

/// A network under test: three processes on one machine, and the ways between them.
class NetworkUnderTest {
 public:
  virtual ~NetworkUnderTest() = default;
  /// `process` is 0, 1 or 2.
  virtual Network& network(int process) = 0;
  virtual Env& env(int process) = 0;
  /// Lets everything go on until the condition holds. Returns false if it does not hold in time.
  virtual bool run_until(const std::function<bool()>& condition) = 0;
  /// Returns an address that leads to a TCP address or endpoint, by a way that stop_ways() stops.
  virtual std::string way_to(const std::string& address) = 0;
  /// From now on nothing passes the ways any more, but no connection ends.
  virtual void stop_ways() = 0;
  /// Ends all connections that use the ways. New ones are possible.
  virtual void cut_ways() = 0;
};

/// A list that callbacks append to. Callbacks of channels may run on any thread.
template <class T>
class Noted {
 public:
  void add(T thing) {
    const std::lock_guard lock(mutex_);
    things_.push_back(std::move(thing));
  }
  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return things_.size();
  }
  T operator[](std::size_t i) const {
    const std::lock_guard lock(mutex_);
    return things_.at(i);
  }
  std::vector<T> all() const {
    const std::lock_guard lock(mutex_);
    return things_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<T> things_;
};

/// Long limits, so that a busy machine is not taken for a silent peer.
inline LinkOptions long_limits() {
  LinkOptions link;
  link.ask_every = std::chrono::seconds(5);
  link.silence = std::chrono::seconds(30);
  link.handshake = std::chrono::seconds(30);
  return link;
}

inline Message note(std::string type, std::uint64_t id = 0) {
  Message message;
  message.type = std::move(type);
  message.id = id;
  return message;
}

inline ServerOptions serving() {
  ServerOptions options;
  options.endpoint = "tcp://127.0.0.1:0";
  options.link = long_limits();
  return options;
}

inline DialOptions dialing(std::string endpoint) {
  DialOptions options;
  options.endpoint = std::move(endpoint);
  options.link = long_limits();
  options.backoff = {std::chrono::milliseconds(1), std::chrono::milliseconds(20)};
  return options;
}

/// A server in process 0 that notes what it hears, in one list of words and in lists of details.
class NotingServer {
 public:
  NotingServer(NetworkUnderTest& under_test, ServerOptions options)
      : loop_(under_test.env(0).make_loop({"server"})) {
    ServerEvents events;
    events.connected = [this](const Peer& peer) {
      words.add("connected");
      peers.add(peer);
    };
    events.message = [this](const Peer&, Message message) {
      words.add(message.type);
      messages.add(std::move(message));
    };
    events.gone = [this](const Peer&, Gone how, const std::string&) {
      words.add("gone");
      gone.add(how);
    };
    events.refused = [this](const std::string&, const std::string& why) { refused.add(why); };
    auto made = under_test.network(0).listen(std::move(options), std::move(events), *loop_);
    REQUIRE(made);
    socket = std::move(*made);
  }

  Noted<std::string> words;
  Noted<Peer> peers;
  Noted<Message> messages;
  Noted<Gone> gone;
  Noted<std::string> refused;

 private:
  std::unique_ptr<Loop> loop_;

 public:
  std::unique_ptr<ControlServer> socket;  // Destroyed first.
};

/// A client that says hello on each connection, unless it is shy.
class NotingClient {
 public:
  enum class Manner { polite, shy };

  NotingClient(NetworkUnderTest& under_test, int process, DialOptions options,
               Manner manner = Manner::polite)
      : loop_(under_test.env(process).make_loop({"client"})) {
    ClientEvents events;
    events.connected = [this, process, manner] {
      auto hello = note("hello");
      hello.incarnation = static_cast<std::uint64_t>(process);
      if (manner == Manner::polite) (void)socket->send(hello);
      connected.add(0);
    };
    events.message = [this](Message message) { messages.add(std::move(message)); };
    events.gone = [this](Gone how, const std::string&) { gone.add(how); };
    events.refused = [this](const std::string& why) { refused.add(why); };
    auto made = under_test.network(process).dial(std::move(options), std::move(events), *loop_);
    REQUIRE(made);
    socket = std::move(*made);
    socket->start();
  }

  Noted<int> connected;
  Noted<Message> messages;
  Noted<Gone> gone;
  Noted<std::string> refused;

 private:
  std::unique_ptr<Loop> loop_;

 public:
  std::unique_ptr<ControlClient> socket;  // Destroyed first.
};

/// Returns the ids of messages of a type.
inline std::vector<std::uint64_t> ids_of(const std::vector<Message>& messages,
                                         const std::string& type) {
  std::vector<std::uint64_t> ids;
  for (const auto& message : messages)
    if (message.type == type) ids.push_back(message.id);
  return ids;
}

/// Returns 1, 2 .. count.
inline std::vector<std::uint64_t> up_to(std::size_t count) {
  std::vector<std::uint64_t> ids;
  for (std::size_t i = 1; i <= count; ++i) ids.push_back(i);
  return ids;
}

inline void check_control_contract(NetworkUnderTest& under_test) {
  using namespace std::chrono_literals;
  const auto wait_for = [&](const std::function<bool()>& condition) {
    const bool holds = under_test.run_until(condition);
    REQUIRE(holds);
  };

  SECTION("messages keep their order in both directions") {
    NotingServer server(under_test, serving());
    server.socket->start();
    NotingClient client(under_test, 1, dialing(server.socket->endpoint()));
    wait_for([&] { return server.messages.size() == 1; });
    CHECK(server.messages[0].type == "hello");
    CHECK(server.peers[0].incarnation == 1);
    CHECK(server.peers[0].roles == all_dialers);
    for (std::uint64_t id = 1; id <= 100; ++id) {
      REQUIRE(client.socket->send(note("ack", id)));
      REQUIRE(server.socket->send(server.peers[0].id, note("node.welcome", id)));
    }
    wait_for([&] { return server.messages.size() == 101 && client.messages.size() == 100; });
    CHECK(ids_of(server.messages.all(), "ack") == up_to(100));
    CHECK(ids_of(client.messages.all(), "node.welcome") == up_to(100));
  }

  SECTION("no callback of a server runs before its start, and then all of them in order") {
    NotingServer server(under_test, serving());
    NotingClient client(under_test, 1, dialing(server.socket->endpoint()));
    wait_for([&] { return client.connected.size() == 1; });
    CHECK(server.words.size() == 0);
    server.socket->start();
    wait_for([&] { return server.words.size() == 2; });
    CHECK(server.words.all() == std::vector<std::string>{"connected", "hello"});
  }

  SECTION("a session ends after all its messages that arrive, and these are the first ones") {
    NotingServer server(under_test, serving());
    server.socket->start();
    {
      NotingClient client(under_test, 1, dialing(server.socket->endpoint()));
      wait_for([&] { return server.messages.size() == 1; });
      for (std::uint64_t id = 1; id <= 100; ++id) REQUIRE(client.socket->send(note("ack", id)));
    }
    wait_for([&] { return server.gone.size() == 1; });
    CHECK(server.gone[0] == Gone::closed);
    const auto words = server.words.all();
    CHECK(words.front() == "connected");
    CHECK(words.back() == "gone");
    const auto ids = ids_of(server.messages.all(), "ack");
    CHECK(ids == up_to(ids.size()));
  }

  SECTION("a client learns that a connection has ended, and makes another one") {
    NotingServer server(under_test, serving());
    server.socket->start();
    NotingClient client(under_test, 1, dialing(under_test.way_to(server.socket->endpoint())));
    wait_for([&] { return server.messages.size() == 1; });
    under_test.cut_ways();
    wait_for([&] { return server.messages.size() == 2; });
    CHECK(client.gone.all() == std::vector<Gone>{Gone::closed});
    CHECK(server.gone.all() == std::vector<Gone>{Gone::closed});
    CHECK(server.peers[0].id != server.peers[1].id);
    // A message to a peer that is gone is no error.
    CHECK(server.socket->send(server.peers[0].id, note("node.welcome")));
  }

  SECTION("a client sends only on the connection that it was told of") {
    ServerOptions options = serving();
    auto server = std::make_unique<NotingServer>(under_test, options);
    options.endpoint = server->socket->endpoint();
    NotingClient client(under_test, 1, dialing(options.endpoint));
    wait_for([&] { return client.connected.size() == 1; });
    server.reset();
    wait_for([&] { return client.gone.size() == 1; });
    const auto sent = client.socket->send(note("ack"));
    REQUIRE_FALSE(sent);
    CHECK(sent.error().text == "ack: there is no connection to " + options.endpoint);
    // Nobody listens there now.
    wait_for([&] { return client.refused.size() >= 2; });
    server = std::make_unique<NotingServer>(under_test, options);
    server->socket->start();
    wait_for([&] { return server->messages.size() == 1; });
    CHECK(client.connected.size() == 2);
  }

  SECTION("addresses that cannot be used are errors at once") {
    NotingServer server(under_test, serving());
    const auto loop = under_test.env(1).make_loop({"test"});
    ServerOptions taken = serving();
    taken.endpoint = server.socket->endpoint();
    CHECK_FALSE(under_test.network(1).listen(taken, {}, *loop));
    CHECK_FALSE(under_test.network(1).dial(dialing("tcp://127.0.0.1:0"), {}, *loop));
    CHECK_FALSE(under_test.network(1).dial(dialing("somewhere"), {}, *loop));
  }

  SECTION("a peer must say hello first") {
    NotingServer server(under_test, serving());
    server.socket->start();
    NotingClient client(under_test, 1, dialing(server.socket->endpoint()),
                        NotingClient::Manner::shy);
    wait_for([&] { return client.connected.size() == 1; });
    REQUIRE(client.socket->send(note("run.list", 7)));
    wait_for([&] { return client.messages.size() == 1; });
    CHECK(client.messages[0].type == "error");
    CHECK(client.messages[0].re == 7);
    CHECK(server.words.size() == 0);
  }

  SECTION("keys and roles decide who may say what") {
    const auto head = make_key_pair().value(), viewer = make_key_pair().value();
    ServerOptions options = serving();
    options.keys = head;
    options.allowed.add(viewer.public_key, {"laptop", {Role::viewer}});
    NotingServer server(under_test, options);
    server.socket->start();
    auto dial = dialing(server.socket->endpoint());
    dial.head_key = head.public_key;
    dial.keys = make_key_pair().value();
    NotingClient stranger(under_test, 1, dial);
    wait_for([&] { return stranger.refused.size() >= 1; });
    dial.keys = viewer;
    NotingClient client(under_test, 2, dial);
    wait_for([&] { return server.messages.size() == 1; });
    CHECK(server.peers[0].host == "laptop");
    CHECK(server.peers[0].key == viewer.public_key);
    REQUIRE(client.socket->send(note("run.stop", 7)));
    wait_for([&] { return client.messages.size() == 1; });
    CHECK(client.messages[0].type == "error");
    CHECK(server.messages.size() == 1);
    // A key that is not on the list any more loses its session.
    REQUIRE(server.socket->allow({}));
    wait_for([&] { return server.gone.size() == 1 && client.gone.size() == 1; });
    CHECK(server.gone[0] == Gone::cut);
    CHECK(stranger.connected.size() == 0);
  }

  SECTION("a peer with too many strikes is cut off and quarantined") {
    ServerOptions options = serving();
    options.strikes.most = 3;
    NotingServer server(under_test, options);
    server.socket->start();
    NotingClient client(under_test, 1, dialing(server.socket->endpoint()));
    NotingClient other(under_test, 2, dialing(server.socket->endpoint()));
    wait_for([&] { return server.messages.size() == 2; });
    const auto bad = server.peers[0].incarnation == 1 ? server.peers[0] : server.peers[1];
    for (int i = 0; i < 3; ++i) REQUIRE(server.socket->strike(bad.id, "the test says so"));
    wait_for([&] { return server.gone.size() == 1 && client.messages.size() >= 1; });
    CHECK(server.gone[0] == Gone::struck_off);
    CHECK(client.messages[0].type == "node.reject");
    CHECK(other.gone.size() == 0);
    CHECK(server.peers.size() == 2);
  }

  SECTION("a server can cut a session after what it has sent") {
    NotingServer server(under_test, serving());
    server.socket->start();
    NotingClient client(under_test, 1, dialing(server.socket->endpoint()));
    wait_for([&] { return server.messages.size() == 1; });
    REQUIRE(server.socket->cut(server.peers[0].id, "the test says so"));
    wait_for([&] { return server.messages.size() == 2 && client.gone.size() == 1; });
    CHECK(server.gone.all() == std::vector<Gone>{Gone::cut});
  }

  SECTION("a peer that takes nothing is cut off at the high water, and others are served") {
    ServerOptions options = serving();
    options.link.high_water = 4;
    NotingServer server(under_test, options);
    server.socket->start();
    NotingClient slow(under_test, 1, dialing(under_test.way_to(server.socket->endpoint())));
    wait_for([&] { return server.messages.size() == 1; });
    const auto peer = server.peers[0].id;
    under_test.stop_ways();
    auto large = note("answer");
    large.payload = {std::string(std::size_t{3} << 20, 'x')};
    int sent = 0;
    wait_for([&] {
      if (sent++ < 64) (void)server.socket->send(peer, large);
      return server.gone.size() == 1;
    });
    CHECK(server.gone[0] == Gone::too_slow);
    CHECK(server.socket->counters()[Count::too_slow] == 1);
    NotingClient other(under_test, 2, dialing(server.socket->endpoint()));
    wait_for([&] { return server.messages.size() == 2; });
    REQUIRE(server.socket->send(server.peers[1].id, note("node.welcome")));
    wait_for([&] { return other.messages.size() == 1; });
  }

  SECTION("what waits to be sent is bounded") {
    ServerOptions options = serving();
    options.link.queue_bytes = 1000;
    NotingServer server(under_test, options);
    server.socket->start();
    auto dial = dialing(server.socket->endpoint());
    dial.link.queue_bytes = 1000;
    NotingClient client(under_test, 1, dial);
    wait_for([&] { return server.messages.size() == 1; });
    auto large = note("answer");
    large.payload = {std::string(1000, 'x')};
    CHECK_FALSE(server.socket->send(server.peers[0].id, large));
    CHECK_FALSE(client.socket->send(large));
    CHECK(server.socket->send(server.peers[0].id, note("node.welcome")));
    CHECK(client.socket->send(note("ack")));
    wait_for([&] { return server.messages.size() == 2 && client.messages.size() == 1; });
    CHECK(client.messages[0].type == "node.welcome");
  }

  SECTION("both ends notice that the other one is silent") {
    ServerOptions options = serving();
    options.link.ask_every = 50ms;
    options.link.silence = 300ms;
    NotingServer server(under_test, options);
    server.socket->start();
    auto dial = dialing(under_test.way_to(server.socket->endpoint()));
    dial.link.ask_every = 50ms;
    dial.link.silence = 300ms;
    NotingClient client(under_test, 1, dial);
    NotingClient other(under_test, 2, dialing(server.socket->endpoint()));
    wait_for([&] { return server.messages.size() >= 2; });
    // A server waits for heartbeats from the first one on.
    auto& clock = under_test.env(0);
    wait_for([&, since = clock.now()] { return clock.now() - since > 4 * dial.link.ask_every; });
    under_test.stop_ways();
    wait_for([&] { return server.gone.size() >= 1 && client.gone.size() >= 1; });
    CHECK(server.gone[0] == Gone::closed);
    CHECK(client.gone[0] == Gone::closed);
    CHECK(other.gone.size() == 0);
  }

  SECTION("after a socket is destroyed, none of its callbacks runs") {
    NotingServer server(under_test, serving());
    server.socket->start();
    NotingClient client(under_test, 1, dialing(server.socket->endpoint()));
    wait_for([&] { return server.messages.size() == 1; });
    for (std::uint64_t id = 1; id <= 100; ++id) REQUIRE(client.socket->send(note("ack", id)));
    server.socket.reset();
    const auto heard = server.words.size();
    wait_for([&] { return client.gone.size() == 1; });
    CHECK(server.words.size() == heard);
  }

  SECTION("subscribers get the events of their topic in order") {
    PublisherOptions options;
    options.endpoint = "tcp://127.0.0.1:0";
    options.link = long_limits();
    const auto publisher = under_test.network(0).open_publisher(std::move(options));
    REQUIRE(publisher);
    Noted<Message> heard;
    SubscriberEvents events;
    events.event = [&](Message event) { heard.add(std::move(event)); };
    const auto loop = under_test.env(1).make_loop({"test"});
    const auto subscriber = under_test.network(1).subscribe(dialing((*publisher)->endpoint()),
                                                            "gpt/", std::move(events), *loop);
    REQUIRE(subscriber);
    const auto event_of = [](const char* run, std::uint64_t id) {
      auto event = note("step", id);
      event.run = run;
      return event;
    };
    // Events from before the subscription are lost.
    wait_for([&] {
      REQUIRE((*publisher)->publish(event_of("gpt", 0)));
      return heard.size() > 0;
    });
    for (std::uint64_t id = 1; id <= 100; ++id) {
      REQUIRE((*publisher)->publish(event_of("gpt", id)));
      REQUIRE((*publisher)->publish(event_of("gpt-small", id)));
    }
    wait_for([&] { return heard.size() > 0 && heard[heard.size() - 1].id == 100; });
    const auto all = heard.all();
    CHECK(std::ranges::all_of(all, [](const Message& event) { return event.run == "gpt"; }));
    for (std::size_t i = 1; i < all.size(); ++i) CHECK(all[i].seq == all[i - 1].seq + 1);
  }
}

/// A receiver at a door that notes what comes.
class NotingReceiver {
 public:
  Receiving receiving(Bound bound) {
    return {.bound = bound,
            .memory = &memory,
            .listener = {[this](Parcel parcel) {
                           std::string head(parcel.head.size(), '\0');
                           std::ranges::copy(parcel.head,
                                             reinterpret_cast<std::byte*>(head.data()));
                           for (const auto& tensor : parcel.tensors)
                             tensors.add(std::vector<std::byte>(tensor.host_bytes().begin(),
                                                                tensor.host_bytes().end()));
                           heads.add(std::move(head));
                         },
                         [this](const ChannelEnd& end) { ends.add(end.why); }}};
  }

  MemoryPool memory;
  Noted<std::string> heads;
  Noted<std::vector<std::byte>> tensors;
  Noted<ChannelEnd::Why> ends;
};

/// `at` and `before` are what open_door() and connect() want for the carrier under test.
inline void check_channel_contract(NetworkUnderTest& under_test, const std::string& at,
                                   const std::string& before) {
  using namespace std::chrono_literals;
  constexpr Epoch epoch{{0x1234, 0x5678}, 7};
  constexpr Token token{0x0123456789abcdef}, other_token{0x0fedcba987654321};
  constexpr Bound bound{4096, 8};
  const auto wait_for = [&](const std::function<bool()>& condition) {
    const bool holds = under_test.run_until(condition);
    REQUIRE(holds);
  };
  const auto loop = under_test.env(1).make_loop({"test"});
  MemoryPool memory;  // The sender's.
  Noted<ChannelEnd::Why> sender_ends;
  const auto connect = [&](const std::string& to, Epoch to_epoch, Token with_token,
                           Bound with_bound) {
    using Made = Result<std::unique_ptr<Sender>>;
    struct Came {
      std::mutex mutex;
      std::optional<Made> made;
    };
    const auto came = std::make_shared<Came>();
    under_test.network(1).connect(
        to,
        {.epoch = to_epoch,
         .token = with_token,
         .bound = with_bound,
         .memory = &memory,
         .on_end = [&](const ChannelEnd& end) { sender_ends.add(end.why); }},
        *loop, [came](Made made) {
          const std::lock_guard lock(came->mutex);
          came->made = std::move(made);
        });
    wait_for([&] {
      const std::lock_guard lock(came->mutex);
      return came->made.has_value();
    });
    const std::lock_guard lock(came->mutex);
    return std::move(*came->made);
  };
  const auto bytes_of_text = [](const std::string& text) {
    return std::as_bytes(std::span(text.data(), text.size()));
  };

  SECTION("parcels arrive once and in order, and a channel closes after the last one") {
    NotingReceiver there;
    const auto door = under_test.network(0).open_door(at, {.epoch = epoch});
    REQUIRE(door);
    const auto receiver = (*door)->expect(token, there.receiving(bound));
    auto sender = connect(before + (*door)->address(), epoch, token, bound);
    REQUIRE(sender);
    for (int i = 0; i < 100; ++i) {
      Tensor tensor = (*sender)->lend({4}, DType::i32);
      for (int k = 0; k < 4; ++k) tensor.data<std::int32_t>()[k] = 10 * i + k;
      const auto head = std::to_string(i);
      Status sent = Done{};
      // The bound is full until the receiver has taken some.
      wait_for([&] {
        sent = (*sender)->send(bytes_of_text(head), {&tensor, 1});
        return sent.ok();
      });
    }
    wait_for([&] { return there.heads.size() == 100; });
    for (std::size_t i = 0; i < 100; ++i) {
      CHECK(there.heads[i] == std::to_string(i));
      const auto bytes = there.tensors[i];
      REQUIRE(bytes.size() == 16);
      CHECK(reinterpret_cast<const std::int32_t*>(bytes.data())[3] ==
            10 * static_cast<std::int32_t>(i) + 3);
    }
    CHECK((*door)->counters().welcome == 1);
    CHECK((*sender)->close(30s).ok());
    wait_for([&] { return there.ends.size() == 1; });
    CHECK(there.ends[0] == ChannelEnd::Why::closed);
    CHECK(sender_ends.size() == 0);
    CHECK_FALSE((*sender)->send({}, {}).ok());
  }

  SECTION("a receiver learns that its sender is lost, after the parcels that came") {
    NotingReceiver there;
    const auto door = under_test.network(0).open_door(at, {.epoch = epoch});
    REQUIRE(door);
    const auto receiver = (*door)->expect(token, there.receiving(bound));
    auto sender = connect(before + (*door)->address(), epoch, token, bound);
    REQUIRE(sender);
    for (const char* head : {"0", "1", "2", "3"})
      REQUIRE((*sender)->send(bytes_of_text(head), {}).ok());
    sender->reset();
    wait_for([&] { return there.ends.size() == 1; });
    CHECK(there.ends[0] == ChannelEnd::Why::lost);
    const auto heads = there.heads.all();
    for (std::size_t i = 0; i < heads.size(); ++i) CHECK(heads[i] == std::to_string(i));
  }

  SECTION("a sender learns that its receiver is gone") {
    NotingReceiver there;
    const auto door = under_test.network(0).open_door(at, {.epoch = epoch});
    REQUIRE(door);
    auto receiver = (*door)->expect(token, there.receiving(bound));
    auto sender = connect(before + (*door)->address(), epoch, token, bound);
    REQUIRE(sender);
    receiver.reset();
    wait_for([&] { return sender_ends.size() == 1; });
    CHECK(sender_ends[0] == ChannelEnd::Why::closed);
    CHECK_FALSE((*sender)->send({}, {}).ok());
    CHECK(there.ends.size() == 0);
  }

  SECTION("a door admits one sender with the token, of the same attempt and with the same bound") {
    NotingReceiver there, other;
    const auto door = under_test.network(0).open_door(at, {.epoch = epoch});
    REQUIRE(door);
    const auto to = before + (*door)->address();
    const auto receiver = (*door)->expect(token, there.receiving(bound));
    CHECK_FALSE(connect(to, epoch, other_token, bound));
    CHECK_FALSE(connect(to, {epoch.run, 6}, token, bound));
    CHECK_FALSE(connect(to, {{1, 2}, 7}, token, bound));
    CHECK_FALSE(connect(to, epoch, token, {bound.bytes, 9}));
    auto sender = connect(to, epoch, token, bound);
    REQUIRE(sender);
    CHECK_FALSE(connect(to, epoch, token, bound));
    const auto counters = (*door)->counters();
    CHECK(counters.welcome == 1);
    CHECK(counters.unknown_token == 2);
    CHECK(counters.other_epoch == 1);
    CHECK(counters.other_run == 1);
    CHECK(counters.other_terms == 1);
    // One door serves all receivers of a process.
    const auto second = (*door)->expect(other_token, other.receiving(bound));
    auto second_sender = connect(to, epoch, other_token, bound);
    REQUIRE(second_sender);
    REQUIRE((*sender)->send(bytes_of_text("first"), {}).ok());
    REQUIRE((*second_sender)->send(bytes_of_text("second"), {}).ok());
    wait_for([&] { return there.heads.size() == 1 && other.heads.size() == 1; });
    CHECK(there.heads[0] == "first");
    CHECK(other.heads[0] == "second");
  }

  SECTION("a parcel beyond the bound is an error, and nothing of it is sent") {
    NotingReceiver there;
    const auto door = under_test.network(0).open_door(at, {.epoch = epoch});
    REQUIRE(door);
    const auto receiver = (*door)->expect(token, there.receiving(bound));
    auto sender = connect(before + (*door)->address(), epoch, token, bound);
    REQUIRE(sender);
    const Tensor large = Tensor::make(memory, {4097}, DType::u8);
    CHECK_FALSE((*sender)->send(bytes_of_text("large"), {&large, 1}).ok());
    const Tensor fits = Tensor::make(memory, {4096}, DType::u8);
    REQUIRE((*sender)->send(bytes_of_text("fits"), {&fits, 1}).ok());
    wait_for([&] { return there.heads.size() == 1; });
    CHECK(there.heads[0] == "fits");
  }

  SECTION("nobody is behind an address") {
    std::string gone;
    {
      const auto door = under_test.network(0).open_door(at, {.epoch = epoch});
      REQUIRE(door);
      gone = before + (*door)->address();
    }
    CHECK_FALSE(connect(gone, epoch, token, bound));
  }

  SECTION("a receiver may outlive its door, and a loop that has ended calls nothing") {
    NotingReceiver there;
    std::unique_ptr<Receiver> receiver;
    Result<std::unique_ptr<Sender>> sender = Error{"not connected yet"};
    {
      const auto door = under_test.network(0).open_door(at, {.epoch = epoch});
      REQUIRE(door);
      receiver = (*door)->expect(token, there.receiving(bound));
      sender = connect(before + (*door)->address(), epoch, token, bound);
      REQUIRE(sender);
      const auto ended = under_test.env(1).make_loop({"ended"});
      ended->end();
      under_test.network(1).connect(
          before + (*door)->address(),
          {.epoch = epoch, .token = other_token, .bound = bound, .memory = &memory, .on_end = {}},
          *ended, [&](const auto&) { sender_ends.add({}); });
    }
    REQUIRE((*sender)->send(bytes_of_text("0"), {}).ok());
    wait_for([&] { return there.heads.size() == 1; });
    CHECK(sender_ends.size() == 0);
  }
}

/// A door that does not answer, which only TCP can have.
inline void check_silent_door(NetworkUnderTest& under_test) {
  const auto door = under_test.network(0).open_door("127.0.0.1:0", {});
  REQUIRE(door);
  const auto way = under_test.way_to((*door)->address());
  under_test.stop_ways();
  const auto loop = under_test.env(1).make_loop({"test"});
  MemoryPool memory;
  Noted<std::string> refused;
  under_test.network(1).connect(way,
                                {.epoch = {},
                                 .token = {},
                                 .bound = {4096, 8},
                                 .memory = &memory,
                                 .on_end = {},
                                 .patience = std::chrono::milliseconds(100)},
                                *loop, [&](const Result<std::unique_ptr<Sender>>& made) {
                                  refused.add(made ? "" : made.error().text);
                                });
  const bool came = under_test.run_until([&] { return refused.size() == 1; });
  REQUIRE(came);
  CHECK_FALSE(refused[0].empty());
}

}  // namespace troupe::transport
