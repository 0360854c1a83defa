#include "transport/control/control_peers.h"

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "catch.h"

using namespace troupe;
using namespace troupe::transport;
using namespace std::chrono_literals;

namespace {

/// A listening end without a network. The test says what comes, and reads what goes out.
class PaperServer final : public ControlPeers::Socket {
 public:
  using Origin = ControlPeers::Origin;

  explicit PaperServer(ServerOptions options = {})
      : peers(std::move(options), noting(), counters, *this) {
    peers.set_time(now);
  }

  /// Lets a message come on a connection, whose number is also its route.
  void come(std::uint64_t connection, Message message, const std::string& key = "") {
    const auto parts = encode(message);
    REQUIRE(parts);
    come_as(connection, {parts->begin(), parts->end()}, key);
  }
  void come_as(std::uint64_t connection, const std::vector<std::string_view>& parts,
               const std::string& key = "") {
    origin_ = {numbered(connection), key};
    peers.hear(std::to_string(connection), parts, true);
  }
  void pass(std::chrono::nanoseconds time) { peers.set_time(now += time); }
  void end(std::uint64_t connection) { peers.lost(numbered(connection)); }

  Origin origin() override { return origin_; }
  Sent send(const std::string& to, const std::vector<std::string>& parts) override {
    const auto message = decode(std::vector<std::string_view>(parts.begin(), parts.end()));
    if (answers == Sent::yes) sent.push_back(to + " " + message.value().type);
    return answers;
  }
  void shut(const Connection& connection) override { closed.push_back(connection.number); }
  void admitted(const Connection& connection) override { welcome.push_back(connection.number); }

  TimePoint now = TimePoint(1h);
  Counters counters;
  Sent answers = Sent::yes;
  std::vector<std::string> heard;  // The calls of the callbacks.
  std::vector<PeerId> ids;
  std::vector<std::string> sent;
  std::vector<std::uint64_t> closed, welcome;
  ControlPeers peers;

 private:
  static Connection numbered(std::uint64_t number) {
    Connection connection;
    connection.number = number;
    connection.far_end = "10.0.0." + std::to_string(number) + ":4711";
    return connection;
  }
  ServerEvents noting() {
    ServerEvents events;
    events.connected = [this](const Peer& peer) {
      ids.push_back(peer.id);
      heard.push_back("connected " + peer.address);
    };
    events.message = [this](const Peer&, const Message& message) { heard.push_back(message.type); };
    events.gone = [this](const Peer&, Gone, const std::string& why) {
      heard.push_back("gone: " + why);
    };
    events.refused = [this](const std::string&, const std::string& why) {
      heard.push_back("refused: " + why);
    };
    return events;
  }

  Origin origin_;
};

Message said(std::string type, std::uint64_t incarnation = 0) {
  Message message;
  message.type = std::move(type);
  message.id = 7;
  message.incarnation = incarnation;
  return message;
}

using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("a hello opens a session, which ends with its connection", "[transport]") {
  PaperServer server;
  server.come(1, said("run.list"));
  CHECK(server.sent == Words{"1 error"});
  CHECK(server.heard.empty());
  server.come(1, said("hello"));
  server.come(1, said("run.list"));
  CHECK(server.heard == Words{"connected 10.0.0.1:4711", "hello", "run.list"});
  CHECK(server.welcome == std::vector<std::uint64_t>{1});
  server.peers.send(server.ids[0], encode(said("node.welcome")).value());
  CHECK(server.sent.back() == "1 node.welcome");
  server.end(1);
  CHECK(server.heard.back() == "gone: its connection has ended");
  server.peers.send(server.ids[0], encode(said("node.welcome")).value());
  CHECK(server.counters[Count::no_such_peer] == 1);
  // A hello of a connection that has ended opens nothing.
  server.come(0, said("hello"));
  CHECK(server.ids.size() == 1);
}

TEST_CASE("a peer that takes nothing is cut off", "[transport]") {
  PaperServer server;
  server.come(1, said("hello"));
  server.answers = ControlPeers::Socket::Sent::full;
  server.peers.send(server.ids[0], encode(said("node.welcome")).value());
  CHECK(server.heard.back() == "gone: it let more than 4096 messages come together");
  CHECK(server.closed == std::vector<std::uint64_t>{1});
  // It may send more until it notices.
  CHECK(server.peers.is_rejected("1"));
  CHECK_FALSE(server.peers.has_session("1"));
  server.end(1);
  CHECK_FALSE(server.peers.is_rejected("1"));
  CHECK_FALSE(server.peers.next_duty());
}

TEST_CASE("a peer with bad messages is quarantined, and may come again later", "[transport]") {
  ServerOptions options;
  options.strikes.most = 2;
  options.strikes.quarantine = 10s;
  PaperServer server(options);
  server.come(1, said("hello", 5));
  server.come_as(1, {"no message"});
  CHECK(server.counters[Count::malformed] == 1);
  server.peers.strike(server.ids[0], "the test says so");
  CHECK(server.heard.back() == "gone: disconnected; the last bad message: the test says so");
  server.end(1);
  server.pass(9s);
  // The same process on the same machine; the port may differ.
  server.come(1, said("hello", 5));
  CHECK(server.sent.back() == "1 node.reject");
  CHECK(server.ids.size() == 1);
  // It has a second to read the reason.
  CHECK(server.peers.next_duty() == server.now + 1s);
  CHECK(server.closed == std::vector<std::uint64_t>{1});
  server.pass(2s);
  CHECK(server.closed == std::vector<std::uint64_t>{1, 1});
  server.end(1);
  server.come(1, said("hello", 5));
  CHECK(server.ids.size() == 2);
}

TEST_CASE("hellos of an address are limited", "[transport]") {
  ServerOptions options;
  options.hellos_of_address = {.per_second = 1, .at_once = 2};
  PaperServer server(options);
  for (int i = 0; i < 3; ++i) {
    server.come(1, said("hello"));
    server.end(1);
  }
  CHECK(server.ids.size() == 2);
  CHECK(server.closed == std::vector<std::uint64_t>{1});
  server.come(2, said("hello"));
  CHECK(server.ids.size() == 3);
  server.pass(1s);
  server.come(1, said("hello"));
  CHECK(server.ids.size() == 4);
}

TEST_CASE("roles follow the allow-list, and a change ends sessions", "[transport]") {
  ServerOptions options;
  options.keys = KeyPair{"head", "secret"};
  options.allowed.add("one", {"alpha", {Role::viewer}});
  options.allowed.add("two", {"beta", {Role::operator_}});
  PaperServer server(options);
  server.come(1, said("hello"), "one");
  server.come(2, said("hello"), "two");
  server.come(1, said("run.stop"), "one");
  CHECK(server.sent == Words{"1 error"});
  CHECK(server.counters[Count::wrong_role] == 1);
  server.come(2, said("run.stop"), "two");
  CHECK(server.heard.back() == "run.stop");
  auto changed = server.peers.allowed();
  changed.add("one", {"alpha", {Role::operator_}});
  server.peers.allow(changed);
  CHECK(server.heard.back() == "gone: the allow list has changed");
  CHECK(server.closed == std::vector<std::uint64_t>{1});
  server.peers.cut(server.ids[1], "the test says so");
  CHECK(server.heard.back() == "gone: the test says so");
}

TEST_CASE("a crowd ends the oldest connection that waits, or the newest of too many",
          "[transport]") {
  Crowd crowd({.connections = 5, .strangers = 3, .of_address = 2});
  CHECK(crowd.add(1, "10.0.0.1:1").empty());
  CHECK(crowd.add(2, "10.0.0.1:2").empty());
  auto too_many = crowd.add(3, "10.0.0.1:3");
  REQUIRE(too_many.size() == 1);
  CHECK(too_many[0].number == 1);
  CHECK(too_many[0].why == "more than 2 connections from this address wait to be admitted");
  CHECK(crowd.add(4, "10.0.0.2:1").empty());
  too_many = crowd.add(5, "10.0.0.3:1");
  REQUIRE(too_many.size() == 1);
  CHECK(too_many[0].number == 2);
  CHECK(too_many[0].why == "more than 3 connections wait to be admitted");
  for (const std::uint64_t number : {3, 4, 5}) crowd.admitted(number);
  CHECK(crowd.add(6, "10.0.0.4:1").empty());
  crowd.admitted(6);
  CHECK(crowd.add(7, "10.0.0.5:1").empty());
  too_many = crowd.add(8, "10.0.0.6:1");
  REQUIRE(too_many.size() == 1);
  CHECK(too_many[0].number == 8);
  crowd.remove(8);
  crowd.remove(3);
  CHECK(crowd.add(9, "10.0.0.7:1").empty());
}
