#include "transport/control/control_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>
#include <zmq.hpp>

#include "catch.h"
#include "storage/temporary_directory.h"
#include "transport/control/endpoint.h"
#include "transport/sockets.h"

using namespace troupe;
using namespace troupe::transport;
using namespace std::chrono_literals;

namespace {

/// The keys of a head and of a node that it knows.
struct Keys {
  KeyPair head = *make_key_pair();
  KeyPair node = *make_key_pair();

  ServerOptions server(Roles roles, std::string endpoint = "tcp://127.0.0.1:0") const {
    auto options = server_options(std::move(endpoint));
    options.keys = head;
    options.allowed.add(node.public_key, {"alpha", roles});
    return options;
  }
  DialOptions client(const std::string& endpoint) const {
    auto options = dial_options(endpoint);
    options.keys = node;
    options.head_key = head.public_key;
    return options;
  }
};

std::string why_not(ServerOptions options) {
  OwnNetwork own;
  const auto bound = own.network.listen(std::move(options), {}, *own.loop);
  return bound ? "" : bound.error().text;
}

/// Returns a message that soon fills a connection.
Message large(std::string type) {
  auto message = message_of(std::move(type));
  message.payload = {std::string(std::size_t{3} << 20, 'x')};
  return message;
}

}  // namespace

TEST_CASE("a node and a head exchange messages over tcp and ipc", "[transport]") {
  const TemporaryDirectory directory;
  for (const auto& endpoint : {std::string("tcp://127.0.0.1:0"), "ipc://" + (directory / "head")}) {
    INFO(endpoint);
    Head head(server_options(endpoint));
    Node node(dial_options(head.socket->endpoint()), 77);
    REQUIRE(head.messages.wait());
    const auto hello = head.messages[0];
    CHECK(hello.message.type == "hello");
    CHECK(hello.peer.incarnation == 77);
    CHECK(hello.peer.roles == all_dialers);
    CHECK(hello.peer.key.empty());
    CHECK_FALSE(hello.peer.address.empty());
    REQUIRE(head.connected.count() == 1);
    CHECK(head.connected[0].id == hello.peer.id);

    auto welcome = message_of("node.welcome", 3);
    welcome.body.set("features", Value::List{"events"});
    REQUIRE(head.socket->send(hello.peer.id, welcome));
    REQUIRE(node.messages.wait());
    CHECK(node.messages[0].type == "node.welcome");
    CHECK(node.messages[0].id == 3);
    CHECK(node.messages[0].body == welcome.body);
    CHECK(head.socket->counters()[Count::received] == 1);
    CHECK(node.socket->counters()[Count::received] == 1);
  }
  CHECK(std::filesystem::is_empty(directory / "."));
}

TEST_CASE("messages arrive in the order of sending, in both directions", "[transport]") {
  Head head;
  head.answer_with([&](const Peer& peer, const Message& message) {
    if (message.type == "ack") (void)head.socket->send(peer.id, message);
  });
  Node node(dial_options(head.socket->endpoint()));
  REQUIRE(node.connected.wait());
  constexpr std::uint64_t count = 2000;
  for (std::uint64_t i = 1; i <= count; ++i) REQUIRE(node.socket->send(message_of("ack", i)));
  REQUIRE(node.messages.wait(count));
  for (std::uint64_t i = 1; i <= count; ++i) REQUIRE(node.messages[i - 1].id == i);
}

TEST_CASE("a peer's key determines its host and roles", "[transport]") {
  const Keys keys;
  Head head(keys.server({Role::node, Role::daemon}));
  Node node(keys.client(head.socket->endpoint()));
  REQUIRE(head.messages.wait());
  const auto peer = head.messages[0].peer;
  CHECK(peer.key == keys.node.public_key);
  CHECK(peer.host == "alpha");
  CHECK(peer.roles == Roles{Role::node, Role::daemon});
  REQUIRE(head.socket->send(peer.id, message_of("node.welcome")));
  CHECK(node.messages.wait());
}

TEST_CASE("a key that is not on the list is refused with the reason", "[transport]") {
  const Keys keys;
  Head head(keys.server({Role::node}));
  auto stranger = keys.client(head.socket->endpoint());
  stranger.keys = *make_key_pair();
  Node node(stranger);
  // The node dials again after each refusal.
  REQUIRE(node.refused.wait(3));
  CHECK(node.refused[0] ==
        head.socket->endpoint() +
            ": the head does not know this key; add it to the head's allow list");
  REQUIRE(head.refused.wait());
  CHECK(head.refused[0] == "the key " + stranger.keys->public_key + " is not on the allow list");
  CHECK(head.socket->counters()[Count::unknown_key] >= 1);
  CHECK(head.connected.count() == 0);
}

TEST_CASE("a refused node is admitted once the list has its key", "[transport]") {
  const TemporaryDirectory directory;
  const Keys keys;
  const auto endpoint = "ipc://" + (directory / "head");
  auto without = keys.server({Role::node}, endpoint);
  without.allowed = {};
  auto head = std::make_unique<Head>(without);
  Node node(keys.client(endpoint));
  REQUIRE(node.refused.wait());
  head.reset();
  head = std::make_unique<Head>(keys.server({Role::node}, endpoint));
  CHECK(head->messages.wait());
}

TEST_CASE("removing a key from the allow list ends only the session of that key", "[transport]") {
  const Keys keys;
  auto options = keys.server({Role::node});
  const auto other = *make_key_pair();
  options.allowed.add(other.public_key, {"beta", {Role::node}});
  Head head(options);
  auto dial = keys.client(head.socket->endpoint());
  Node node(dial, 1);
  dial.keys = other;
  Node stays(dial, 2);
  REQUIRE(head.connected.wait(2));
  AllowList without;
  without.add(other.public_key, {"beta", {Role::node}});
  REQUIRE(head.socket->allow(without));
  REQUIRE(node.gone.wait());
  REQUIRE(head.gone.wait());
  CHECK(head.gone[0].peer.host == "alpha");
  CHECK(head.gone[0].gone == Gone::cut);
  REQUIRE(node.refused.wait());  // It dials again without success.
  REQUIRE(stays.socket->send(message_of("node.heartbeat")));
  REQUIRE(head.messages.wait(3));
  CHECK(head.gone.count() == 1);
}

TEST_CASE("keys at only one end or another head's key prevent a connection", "[transport]") {
  const Keys keys;
  Head head(keys.server({Role::node}));
  {
    Node plain(dial_options(head.socket->endpoint()));
    REQUIRE(plain.refused.wait(2));
  }
  {
    auto other = keys.client(head.socket->endpoint());
    other.head_key = make_key_pair()->public_key;
    Node misled(other);
    REQUIRE(misled.refused.wait(2));
  }
  Head open;
  Node keyed(keys.client(open.socket->endpoint()));
  REQUIRE(keyed.refused.wait(2));
  CHECK(head.connected.count() + open.connected.count() == 0);
}

TEST_CASE("the end of a node is reported after all its messages", "[transport]") {
  Head head;
  {
    Node node(dial_options(head.socket->endpoint()));
    REQUIRE(node.connected.wait());
    REQUIRE(head.messages.wait());
    // Data that the system already has when a process ends still arrives.
    RawConnection last(head.socket->endpoint());
    REQUIRE(last.shake_hands());
    last.send_message(parts_of(message_of("hello")));
    // A head that hears of a connection and its end together cannot tell whose it was.
    REQUIRE(head.messages.wait(2));
    for (std::uint64_t i = 1; i <= 100; ++i) last.send_message(parts_of(message_of("ack", i)));
    last.finish();
    REQUIRE(last.closed());
  }
  REQUIRE(head.gone.wait(2));
  CHECK(head.messages.count() == 102);
  for (const std::size_t i : {0, 1}) {
    CHECK(head.gone[i].gone == Gone::closed);
    CHECK(head.gone[i].why == "its connection has ended");
  }
}

TEST_CASE("a node that is behind gets the last messages of a head that has gone", "[transport]") {
  const RawListener head;
  auto options = dial_options(head.endpoint());
  options.link.queue = 1;
  Node node(options);
  RawConnection last = head.accept();
  REQUIRE(last.shake_hands("ROUTER"));
  REQUIRE(last.wait_for("hello"));
  REQUIRE(node.connected.wait());
  std::promise<void> go_on;
  node.own.loop->post([until_then = go_on.get_future().share()] { until_then.wait(); });
  constexpr std::size_t count = 20;
  for (std::size_t i = 1; i <= count; ++i)
    last.send_message(parts_of(message_of("node.welcome", i)));
  last.finish();
  REQUIRE(last.closed());
  go_on.set_value();
  REQUIRE(node.gone.wait());
  CHECK(node.messages.count() == count);
}

TEST_CASE("a peer that is silent for longer than it announced is gone", "[transport]") {
  Head head(server_options());
  // Sends one ZMTP ping, which announces silence of at most a tenth of a second.
  RawConnection frozen(head.socket->endpoint());
  REQUIRE(frozen.shake_hands());
  frozen.send_message(parts_of(message_of("hello")));
  frozen.send(std::string("\4\7\4PING\0\1", 9));
  REQUIRE(head.gone.wait());
  CHECK(head.gone[0].gone == Gone::closed);
}

TEST_CASE("a head that is silent for too long is reported as gone", "[transport]") {
  const RawListener head;
  auto options = dial_options(head.endpoint());
  options.link.ask_every = 20ms;
  options.link.silence = 60ms;
  Node node(options, 1);
  // Completes the handshake and then never answers pings.
  RawConnection frozen = head.accept();
  REQUIRE(frozen.shake_hands("ROUTER"));
  REQUIRE(node.gone.wait());
  CHECK(node.gone[0].gone == Gone::closed);
}

TEST_CASE("a node says so if it reaches another port of a head", "[transport]") {
  const RawListener publisher;
  Node node(dial_options(publisher.endpoint()), 1);
  RawConnection events = publisher.accept();
  (void)events.shake_hands("PUB");  // The node hangs up as soon as it reads this.
  REQUIRE(node.refused.wait());
  INFO(node.refused[0]);
  CHECK(node.refused[0].starts_with(publisher.endpoint() + ": something listens there"));
}

TEST_CASE("a node reconnects to a head that was away", "[transport]") {
  const TemporaryDirectory directory;
  const auto endpoint = "ipc://" + (directory / "head");
  auto head = std::make_unique<Head>(server_options(endpoint));
  Node node(dial_options(endpoint), 5);
  REQUIRE(head->messages.wait());
  head.reset();
  REQUIRE(node.gone.wait());
  CHECK(node.gone[0].gone == Gone::closed);
  CHECK(node.socket->send(message_of("ack")).error().text ==
        "ack: there is no connection to " + endpoint);
  REQUIRE(node.refused.wait());
  CHECK(node.refused[0] == endpoint + ": nobody listens there");

  head = std::make_unique<Head>(server_options(endpoint));
  REQUIRE(head->messages.wait());
  CHECK(head->messages[0].peer.incarnation == 5);
  CHECK(node.connected.wait(2));
}

TEST_CASE("a peer that does not read is disconnected and delays no other peer", "[transport]") {
  auto options = server_options();
  options.link.high_water = 4;
  Head head(options);
  RawConnection slow(head.socket->endpoint());
  REQUIRE(slow.shake_hands());
  slow.send_message(parts_of(message_of("hello")));
  REQUIRE(head.messages.wait());
  const auto peer = head.messages[0].peer;
  for (int i = 0; i < 64 && head.gone.count() == 0; ++i)
    REQUIRE(head.socket->send(peer.id, large("answer")));
  REQUIRE(head.gone.wait());
  CHECK(head.gone[0].peer.id == peer.id);
  CHECK(head.gone[0].gone == Gone::too_slow);
  CHECK(head.gone[0].why == "it let more than 4 messages come together");
  CHECK(head.socket->counters()[Count::too_slow] == 1);
  CHECK(slow.closed());

  Node other(dial_options(head.socket->endpoint()));
  REQUIRE(head.messages.wait(2));
  // A message to a peer that is gone is counted and is no error.
  REQUIRE(head.socket->send(peer.id, message_of("node.welcome")));
  REQUIRE(head.socket->send(head.messages[1].peer.id, message_of("node.welcome")));
  REQUIRE(other.messages.wait());
  CHECK(head.socket->counters()[Count::no_such_peer] >= 1);
}

TEST_CASE("a node disconnects from a head that does not read", "[transport]") {
  zmq::context_t context;
  zmq::socket_t head(context, zmq::socket_type::router);
  head.set(zmq::sockopt::linger, 0);
  head.set(zmq::sockopt::rcvhwm, 1);
  head.bind("tcp://127.0.0.1:0");
  auto options = dial_options(head.get(zmq::sockopt::last_endpoint));
  options.link.high_water = 4;
  Node node(options);
  REQUIRE(node.connected.wait());
  for (int i = 0; i < 64 && node.gone.count() == 0; ++i) (void)node.socket->send(large("answer"));
  REQUIRE(node.gone.wait());
  CHECK(node.gone[0].gone == Gone::too_slow);
  CHECK(node.socket->counters()[Count::too_slow] == 1);
}

TEST_CASE("a head can end one connection without affecting others", "[transport]") {
  Head head;
  Node first(dial_options(head.socket->endpoint()), 1);
  REQUIRE(head.messages.wait(1));
  Node second(dial_options(head.socket->endpoint()), 2);
  REQUIRE(head.messages.wait(2));
  const auto peer = head.messages[0].peer;
  REQUIRE(head.socket->cut(peer.id, "the run has ended"));
  REQUIRE(head.gone.wait());
  CHECK(head.gone[0].peer.id == peer.id);
  CHECK(head.gone[0].gone == Gone::cut);
  CHECK(head.gone[0].why == "the run has ended");
  // The node dials again, as another peer.
  REQUIRE(first.gone.wait());
  REQUIRE(head.messages.wait(3));
  CHECK(head.messages[2].peer.incarnation == 1);
  CHECK(head.messages[2].peer.id != peer.id);
  CHECK(second.gone.count() == 0);
  // Cutting a peer that is gone has no effect.
  REQUIRE(head.socket->cut(peer.id, "again"));
  REQUIRE(head.socket->send(head.messages[1].peer.id, message_of("node.welcome")));
  REQUIRE(second.messages.wait());
  CHECK(head.gone.count() == 1);
}

TEST_CASE("the queue of a socket's thread is bounded", "[transport]") {
  auto options = server_options();
  options.link.queue = 1;
  options.link.queue_bytes = 1000;
  Head head(options);
  Node node(dial_options(head.socket->endpoint()));
  REQUIRE(head.messages.wait());
  const auto peer = head.messages[0].peer.id;
  const auto error =
      head.socket->endpoint() + ": 1 orders or 1000 bytes wait for this socket already";
  // A message that is larger than the queue never fits.
  auto message = message_of("node.welcome");
  message.payload = {std::string(1000, 'x')};
  const auto too_large = head.socket->send(peer, message);
  REQUIRE_FALSE(too_large);
  CHECK(too_large.error().text == error);
  // Sending is quicker than the thread of the socket.
  std::size_t sent = 0;
  Status last = Done{};
  for (; sent < 1'000'000; ++sent)
    if (last = head.socket->send(peer, message_of("node.welcome")); !last) break;
  REQUIRE_FALSE(last);
  CHECK(last.error().text == error);
  CHECK(node.messages.wait(sent));
  // There is room for orders about sessions.
  while (head.socket->send(peer, message_of("node.welcome"))) {
  }
  REQUIRE(head.socket->cut(peer, "the run has ended"));
  CHECK(head.gone.wait());
}

TEST_CASE("an address that is in use or invalid gives a clear error", "[transport]") {
  const TemporaryDirectory directory;
  Head head;
  const auto taken = head.socket->endpoint();
  CHECK(taken != "tcp://127.0.0.1:0");
  CHECK(why_not(server_options(taken)) ==
        taken +
            ": another program listens there; stop it, or take another port (0 takes a free "
            "one)");
  CHECK(why_not(server_options("somewhere")) ==
        "\"somewhere\" is not an address: it begins with neither tcp:// nor ipc://; wanted "
        "tcp://HOST:PORT or ipc://PATH");
  const auto nowhere = "ipc://" + (directory / "no/such/directory");
  CHECK(why_not(server_options(nowhere)) ==
        nowhere + ": the directory does not exist; make it first");
  auto elsewhere = server_options("tcp://192.0.2.1:0");
  elsewhere.link.plain = LinkOptions::Plain::anywhere;
  CHECK(
      why_not(elsewhere) ==
      "tcp://192.0.2.1:0: no network interface of this machine has this address; \"*\" takes all");
}

TEST_CASE("a socket file in use is kept, and one that a crash left is replaced", "[transport]") {
  const TemporaryDirectory directory;
  const auto path = directory / "head";
  const auto endpoint = "ipc://" + path;
  {
    Head head(server_options(endpoint));
    CHECK(why_not(server_options(endpoint)) ==
          endpoint + ": another program listens there; stop it, or take another path");
    Node node(dial_options(endpoint));
    CHECK(head.messages.wait());
  }
  CHECK_FALSE(std::filesystem::exists(path));

  const int left = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, path.c_str());
  REQUIRE(::bind(left, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  ::close(left);
  REQUIRE(std::filesystem::exists(path));
  {
    Head head(server_options(endpoint));
    Node node(dial_options(endpoint));
    CHECK(head.messages.wait());
  }
  CHECK_FALSE(std::filesystem::exists(path));

  std::ofstream(path) << "mine";
  CHECK_FALSE(why_not(server_options(endpoint)).empty());
  CHECK(std::filesystem::file_size(path) == 4);
}

TEST_CASE("plain connections must stay on the machine unless the options allow more",
          "[transport]") {
  for (const auto* endpoint : {"tcp://0.0.0.0:0", "tcp://*:0", "tcp://192.0.2.1:4711"}) {
    INFO(endpoint);
    CHECK(why_not(server_options(endpoint)) ==
          to_string(*parse_endpoint(endpoint)) +
              ": without keys everyone on the network could control this head; make keys with "
              "`troupe keys new`, or use 127.0.0.1 or ipc://");
  }
  OwnNetwork own;
  CHECK_FALSE(own.network.dial(dial_options("tcp://192.0.2.1:4711"), {}, *own.loop));

  auto anywhere = server_options("tcp://0.0.0.0:0");
  anywhere.link.plain = LinkOptions::Plain::anywhere;
  CHECK(why_not(anywhere).empty());
  auto keyed = server_options("tcp://0.0.0.0:0");
  keyed.keys = *make_key_pair();
  CHECK(why_not(keyed).empty());
}

TEST_CASE("dialing an invalid address fails", "[transport]") {
  OwnNetwork own;
  const auto why = [&](DialOptions options) {
    const auto dialled = own.network.dial(std::move(options), {}, *own.loop);
    return dialled ? "" : dialled.error().text;
  };
  CHECK(why(dial_options("tcp://127.0.0.1:0")) ==
        "tcp://127.0.0.1:0: wanted the host and the port of a head to dial");
  CHECK_FALSE(why(dial_options("head:1")).empty());
  auto without_head = dial_options("tcp://127.0.0.1:1");
  without_head.keys = *make_key_pair();
  CHECK(why(without_head) ==
        "tcp://127.0.0.1:1: the head's public key is missing or is no key; the "
        "head prints it when it starts");
}

TEST_CASE("many nodes connect at once, exchange messages and leave", "[transport]") {
  auto options = server_options();
  options.hellos_of_address = {.per_second = 1000, .at_once = 1000};
  Head head(options);
  {
    std::vector<std::unique_ptr<Node>> nodes;
    for (std::uint64_t i = 1; i <= 32; ++i)
      nodes.push_back(std::make_unique<Node>(dial_options(head.socket->endpoint()), i));
    REQUIRE(head.messages.wait(32));
    for (std::size_t i = 0; i < 32; ++i)
      REQUIRE(head.socket->send(head.messages[i].peer.id,
                                message_of("node.welcome", head.messages[i].peer.incarnation)));
    for (std::uint64_t i = 1; i <= 32; ++i) {
      REQUIRE(nodes[i - 1]->messages.wait());
      CHECK(nodes[i - 1]->messages[0].id == i);
    }
  }
  CHECK(head.gone.wait(32));
}

TEST_CASE("without keys a head accepts only its own user", "[transport]") {
  if (geteuid() != 0) {
    WARN("skipped: only root can be another user");
    return;
  }
  Head head;
  {
    const AnotherUser other;
    RawConnection stranger(head.socket->endpoint());
    (void)stranger.shake_hands();
    stranger.send_message(parts_of(message_of("hello")));
    CHECK(stranger.closed());
  }
  REQUIRE(head.refused.wait());
  INFO(head.refused[0]);
  CHECK(head.refused[0].find("it is user 65534 of this machine, and without keys only user 0") !=
        std::string::npos);
  CHECK(head.socket->counters()[Count::other_user] == 1);
  CHECK(head.connected.count() == 0);
  // A client of the head's user is accepted.
  Node node(dial_options(head.socket->endpoint()));
  REQUIRE(head.connected.wait());
  CHECK(head.connected[0].user == geteuid());

  // With keys, the key and not the user counts.
  const Keys keys;
  Head keyed(keys.server({Role::operator_}));
  {
    const AnotherUser other;
    Node client(keys.client(keyed.socket->endpoint()));
    REQUIRE(keyed.connected.wait());
  }
}

TEST_CASE("another user who disconnects at once is never taken for the next client",
          "[transport]") {
  if (geteuid() != 0) {
    WARN("skipped: only root can be another user");
    return;
  }
  constexpr int rounds = 300;
  constexpr std::uint64_t foreign = 666;
  Head head;
  std::atomic<bool> ends = false;
  // Descriptors are reused alternately by both users.
  std::thread own([&] {
    while (!ends) {
      RawConnection client(head.socket->endpoint());
      client.greet();
      auto hello = message_of("hello");
      hello.incarnation = 1;
      client.send_message(parts_of(hello));
      (void)client.wait_for("READY");
    }
  });
  {
    const AnotherUser other;
    for (int round = 0; round < rounds; ++round) {
      RawConnection stranger(head.socket->endpoint());
      stranger.greet();
      for (const auto* type : {"hello", "run.list"}) {
        auto message = message_of(type);
        message.incarnation = foreign;
        stranger.send_message(parts_of(message));
      }
    }
  }
  ends = true;
  own.join();
  // The head handled all earlier connections before this one.
  Node node(dial_options(head.socket->endpoint()), 2);
  const auto is_there = [&] {
    for (std::size_t i = 0; i < head.connected.count(); ++i)
      if (head.connected[i].incarnation == 2) return true;
    return false;
  };
  for (std::size_t seen = head.connected.count(); !is_there(); ++seen)
    REQUIRE(head.connected.wait(seen + 1));
  for (std::size_t i = 0; i < head.messages.count(); ++i)
    CHECK(head.messages[i].message.incarnation != foreign);
  CHECK(head.socket->counters()[Count::other_user] > 0);
}

TEST_CASE("a viewer cannot give orders", "[transport]") {
  const Keys keys;
  Head head(keys.server({Role::viewer}));
  Node viewer(keys.client(head.socket->endpoint()));
  REQUIRE(head.connected.wait());
  for (const auto* type : {"status", "run.list", "run.get", "run.events", "node.list"})
    REQUIRE(viewer.socket->send(message_of(type)));
  REQUIRE(head.messages.wait(6));
  for (const auto* type : {"run.submit", "run.stop", "run.set", "node.drain", "chaos"})
    REQUIRE(viewer.socket->send(message_of(type, 7)));
  REQUIRE(viewer.messages.wait(5));
  for (std::size_t i = 0; i < 5; ++i) CHECK(viewer.messages[i].type == "error");
  CHECK(head.messages.count() == 6);
}
