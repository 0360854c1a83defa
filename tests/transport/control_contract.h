#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "catch.h"
#include "tests/transport/network_under_test.h"

/// Checks what control sockets of every network promise. The same checks run against real sockets
/// and against a simulated network.
namespace troupe::transport {

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
    // The client notes the connection after it has said hello on it.
    wait_for([&] { return server->messages.size() == 1 && client.connected.size() >= 2; });
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
}

}  // namespace troupe::transport
