#include <algorithm>
#include <random>
#include <string>
#include <zmq.hpp>

#include "catch.h"
#include "transport/control/control_socket.h"
#include "transport/sockets.h"
#include "transport/wire/refusal.h"

using namespace troupe;
using namespace troupe::transport;
using namespace std::chrono_literals;

/// Invalid input from the network: the head continues, uses no more memory than before, and reports
/// what it dropped.

namespace {

std::string bytes(std::initializer_list<int> values) {
  std::string out;
  for (const int value : values) out += static_cast<char>(value);
  return out;
}

/// Returns a hello of an incarnation.
std::vector<std::string> hello(std::uint64_t incarnation = 0) {
  auto message = message_of("hello");
  message.incarnation = incarnation;
  return parts_of(message);
}

/// Returns valid parts with another body of arbitrary bytes.
std::vector<std::string> with_body(const std::string& type, const std::string& body) {
  auto parts = parts_of(message_of(type));
  parts[2] = body;
  for (std::size_t i = 0; i < 4; ++i)
    parts[0][12 + i] = static_cast<char>(body.size() >> (8 * i) & 0xff);
  return parts;
}

std::vector<std::string> of_version(int major) {
  auto parts = hello();
  parts[0][4] = static_cast<char>(major);
  return parts;
}

/// A node that opened a session and can then send anything.
struct Speaker {
  explicit Speaker(Head& head, std::uint64_t incarnation = 0) : line(head.socket->endpoint()) {
    const auto before = head.messages.count();
    shaken = line.shake_hands();
    line.send_message(hello(incarnation));
    admitted = head.messages.wait(before + 1);
  }

  RawConnection line;
  bool shaken = false;
  bool admitted = false;
};

/// Returns whether the head still serves honest nodes.
bool serves(Head& head) {
  const auto before = head.messages.count();
  Node node(dial_options(head.socket->endpoint()), 4711);
  return head.messages.wait(before + 1) && node.connected.wait();
}

std::uint64_t count(const Head& head, Count what) { return head.socket->counters()[what]; }

/// Returns options under which the second strike ends a session.
ServerOptions two_strikes() {
  auto options = server_options();
  options.strikes.most = 2;
  return options;
}

/// Strikes a peer twice under two_strikes(). Returns the reason for its end. An earlier strike
/// would end the session at the first of the two.
std::string reason_after_two_strikes(Head& head, PeerId peer) {
  if (!head.socket->strike(peer, "the first") || !head.socket->strike(peer, "the second"))
    return "the head takes no strikes";
  return head.gone.wait() ? head.gone[0].why : "the session stays";
}

}  // namespace

TEST_CASE("data that is not ZeroMQ ends its connection", "[transport]") {
  Head head;
  std::mt19937 random(1);
  std::string noise(1000, '\0');
  for (char& c : noise) c = static_cast<char>(random());
  const std::vector<std::string> things = {
      noise,
      "GET /status HTTP/1.1\r\nHost: head\r\n\r\n",
      // A TLS client's hello, 64 KiB of zeros, and a greeting with an invalid version.
      bytes({0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3}) + std::string(500, '\x5a'),
      std::string(65536, '\0'),
      "\xff" + std::string(8, '\0') + "\x7f" + std::string(200, '\x09'),
  };
  for (const auto& thing : things) {
    RawConnection line(head.socket->endpoint());
    line.send(thing);
    // Some of the data might be the beginning of a valid greeting, so the test also ends the input.
    line.finish();
    CHECK(line.closed());
  }
  CHECK(serves(head));
  CHECK(count(head, Count::failed_connection) == 5);
  CHECK(head.connected.count() == 1);
}

TEST_CASE("a frame that claims a huge size ends its connection and takes no memory",
          "[transport]") {
  Head head;
  Speaker speaker(head);
  REQUIRE(speaker.admitted);
  const auto before = heap_bytes();
  // The frame claims to be the last one and to have 2^62 bytes; a few of them follow.
  speaker.line.send(bytes({2, 0x40, 0, 0, 0, 0, 0, 0, 0}) + std::string(1000, 'x'));
  CHECK(speaker.line.closed());
  REQUIRE(head.gone.wait());
  CHECK(head.gone[0].gone == Gone::closed);
  CHECK(heap_bytes() < before + (std::size_t{8} << 20));
  CHECK(serves(head));
}

TEST_CASE("a message that was cut off is never delivered", "[transport]") {
  Head head;
  {
    Speaker speaker(head);
    REQUIRE(speaker.admitted);
    auto parts = parts_of(message_of("node.heartbeat"));
    parts.pop_back();
    speaker.line.send(bytes({1, 16}) + parts[0]);
  }
  REQUIRE(head.gone.wait());
  CHECK(head.messages.count() == 1);
  CHECK(count(head, Count::malformed) == 0);
}

TEST_CASE("a message of endless parts ends its connection", "[transport]") {
  Head head;
  Speaker speaker(head);
  REQUIRE(speaker.admitted);
  // Empty parts, each with the flag that more follow. A part has two bytes here, but many more in
  // the head's memory.
  const std::string parts = [] {
    std::string some;
    for (int i = 0; i < 1 << 16; ++i) some += std::string("\1\0", 2);
    return some;
  }();
  // Twice the largest message is enough; the connection ends before that.
  for (int i = 0; i < 1000 && head.gone.count() == 0; ++i) speaker.line.send(parts);
  REQUIRE(head.gone.wait());
  CHECK(head.gone[0].gone == Gone::closed);
  REQUIRE(head.refused.wait());
  CHECK(head.refused[0] == "sends parts of a message without end");
  CHECK(serves(head));
}

TEST_CASE("a peer with another major version is rejected once and disconnected", "[transport]") {
  Head head;
  RawConnection line(head.socket->endpoint());
  REQUIRE(line.shake_hands());
  for (int i = 0; i < 3; ++i) line.send_message(of_version(2));
  CHECK(line.wait_for("node.reject"));
  CHECK(line.wait_for("version"));
  CHECK(line.wait_for("2.0"));
  CHECK(line.wait_for("1.x"));
  CHECK(line.closed());
  CHECK(line.times("node.reject") == 1);
  CHECK(count(head, Count::wrong_version) == 1);
  CHECK(head.connected.count() == 0);
  REQUIRE(head.refused.wait());
  CHECK(head.refused[0] == "uses version 2.0 of the wire protocol, wanted 1.x");
  CHECK(serves(head));
}

TEST_CASE("ten bad messages get a peer disconnected and quarantined", "[transport]") {
  const std::string text = bytes({0x81, 0xa1}) + "a";
  const std::vector<std::vector<std::string>> bad = {
      {"", "", ""},
      {"one part"},
      {"", "", "", "", "", "", "", "", "", "", "", "", "", "", ""},
      with_body("node.heartbeat", text),                              // Cut off.
      with_body("node.heartbeat", text + std::string(1000, '\x91')),  // Nested too deep.
      with_body("node.heartbeat", text + bytes({0xdd, 0xff, 0xff, 0xff, 0xff})),  // Long.
      with_body("node.heartbeat", text + bytes({0xdb, 0xff, 0xff, 0xff, 0xff})),  // Long.
      with_body("node.heartbeat", bytes({0x80, 0x80})),                           // Trailing bytes.
      with_body("node.heartbeat", std::string(4000, '\xc0')),                     // Too large.
      with_body("node.heartbeat", text + bytes({0xcb, 0x7f, 0xf8, 0, 0, 0, 0, 0, 0})),  // NaN.
  };
  REQUIRE(bad.size() == 10);
  Head head;
  Speaker speaker(head, 7);
  REQUIRE(speaker.admitted);
  for (std::size_t i = 0; i + 1 < bad.size(); ++i) speaker.line.send_message(bad[i]);
  speaker.line.send_message(parts_of(message_of("ack")));
  // Nine bad messages are only dropped.
  REQUIRE(head.messages.wait(2));
  CHECK(head.messages[1].message.type == "ack");
  CHECK(count(head, Count::malformed) == 9);

  speaker.line.send_message(bad.back());
  REQUIRE(head.gone.wait());
  CHECK(head.gone[0].gone == Gone::struck_off);
  CHECK(head.gone[0].why ==
        "disconnected; the last bad message: node.heartbeat.body.a: found NaN, wanted a finite "
        "number; what is not known is left out");
  CHECK(speaker.line.closed());
  CHECK(count(head, Count::struck_off) == 1);
  // The peer is told of the first only; the others are counted.
  CHECK(head.refused.count() == 1);

  RawConnection again(head.socket->endpoint());
  REQUIRE(again.shake_hands());
  again.send_message(hello(7));
  CHECK(again.wait_for("quarantined"));
  CHECK(again.closed());
  CHECK(count(head, Count::quarantined) == 1);
  // Another incarnation on the same host is not affected.
  CHECK(serves(head));
}

TEST_CASE("messages that a caller rejects count as strikes too", "[transport]") {
  auto options = server_options();
  options.strikes.most = 2;
  Head head(options);
  Speaker speaker(head);
  REQUIRE(speaker.admitted);
  const auto peer = head.messages[0].peer.id;
  REQUIRE(head.socket->strike(peer, "the first"));
  REQUIRE(head.socket->strike(peer, "hello.body.role: is missing"));
  REQUIRE(head.gone.wait());
  CHECK(head.gone[0].why == "disconnected; the last bad message: hello.body.role: is missing");
  CHECK(speaker.line.closed());
}

TEST_CASE("a message that a role may not send is refused and counts as a strike", "[transport]") {
  const auto head_keys = *make_key_pair();
  const auto node_keys = *make_key_pair();
  auto options = server_options();
  options.keys = head_keys;
  options.allowed.add(node_keys.public_key, {"alpha", {Role::node}});
  options.strikes.most = 3;
  Head head(options);
  auto dial = dial_options(head.socket->endpoint());
  dial.keys = node_keys;
  dial.head_key = head_keys.public_key;
  Node node(dial);
  REQUIRE(head.messages.wait());
  REQUIRE(node.socket->send(message_of("run.stop", 7)));
  REQUIRE(node.socket->send(message_of("stage.start", 8)));
  REQUIRE(node.socket->send(message_of("player_pulse")));
  REQUIRE(head.messages.wait(2));
  CHECK(head.messages[1].message.type == "player_pulse");
  CHECK(count(head, Count::wrong_role) == 2);
  REQUIRE(head.refused.wait());
  CHECK(head.refused[0] == "run.stop: a key with the roles node may not send this");
  REQUIRE(node.messages.wait(2));
  CHECK(node.messages[0].re == 7);
  const auto forbidden = from_message<Refusal>(node.messages[0]);
  REQUIRE(forbidden.ok());
  CHECK(forbidden->code == RefusalCode::forbidden);
  CHECK(forbidden->text ==
        "a key with the roles node may not send 'run.stop'; it takes the role operator in the "
        "head's allow list");
  CHECK(node.messages[1].re == 8);
  CHECK(from_message<Refusal>(node.messages[1])->code == RefusalCode::unsupported);
  // The third strike ends the session. The next hello is rejected.
  REQUIRE(node.socket->send(message_of("run.stop")));
  REQUIRE(head.gone.wait());
  CHECK(head.gone[0].gone == Gone::struck_off);
  const auto is_rejected = [&] {
    for (std::size_t i = 2; node.messages.wait(i + 1); ++i)
      if (node.messages[i].type == "node.reject") return true;
    return false;
  };
  CHECK(is_rejected());
}

TEST_CASE("a message before hello is refused and the sender may still say hello", "[transport]") {
  Head head;
  RawConnection line(head.socket->endpoint());
  REQUIRE(line.shake_hands());
  for (int i = 0; i < 50; ++i) line.send_message(parts_of(message_of("run.stop")));
  line.send_message(hello());
  line.send_message(parts_of(message_of("run.stop")));
  REQUIRE(head.messages.wait(2));
  CHECK(head.messages[0].message.type == "hello");
  CHECK(head.messages[1].message.type == "run.stop");
  CHECK(count(head, Count::before_hello) == 50);
  CHECK(line.wait_for("found 'run.stop' before a session was opened; send 'hello' first"));
}

TEST_CASE("a request of an unknown type is answered as unsupported without a strike",
          "[transport]") {
  constexpr std::uint64_t requests = 20;
  Head head(two_strikes());
  Node asker(dial_options(head.socket->endpoint()), 77);
  REQUIRE(asker.connected.wait());
  for (std::uint64_t i = 0; i < requests; ++i)
    REQUIRE(asker.socket->send(message_of("of.tomorrow", 9 + i)));
  REQUIRE(asker.messages.wait(requests));
  for (std::uint64_t i = 0; i < requests; ++i) CHECK(asker.messages[i].re == 9 + i);
  const auto refusal = from_message<Refusal>(asker.messages[0]);
  REQUIRE(refusal.ok());
  CHECK(refusal->code == RefusalCode::unsupported);
  CHECK(refusal->path == "type");
  CHECK(refusal->text == "'of.tomorrow' is not a message type that this head supports");
  CHECK(count(head, Count::unknown_type) == requests);
  REQUIRE(head.messages.wait());
  CHECK(head.gone.count() == 0);
  CHECK(reason_after_two_strikes(head, head.messages[0].peer.id) ==
        "disconnected; the last bad message: the second");
}

TEST_CASE("an unknown message type without an id is refused without a strike", "[transport]") {
  Head head(two_strikes());
  Speaker speaker(head);
  REQUIRE(speaker.admitted);
  auto newer = message_of("of.tomorrow");
  for (int i = 0; i < 50; ++i) speaker.line.send_message(parts_of(newer));
  speaker.line.send_message(parts_of(message_of("ack")));
  REQUIRE(head.messages.wait(2));
  CHECK(head.messages[1].message.type == "ack");
  CHECK(count(head, Count::unknown_type) == 50);
  CHECK(head.gone.count() == 0);
  CHECK(speaker.line.wait_for("'of.tomorrow' is not a message type that this head supports"));
  CHECK(reason_after_two_strikes(head, head.messages[0].peer.id) ==
        "disconnected; the last bad message: the second");
  CHECK(speaker.line.closed());
}

TEST_CASE("an unknown message type is refused before a session", "[transport]") {
  Head head;
  RawConnection line(head.socket->endpoint());
  REQUIRE(line.shake_hands());
  line.send_message(parts_of(message_of("of.tomorrow", 9)));
  CHECK(line.wait_for("'of.tomorrow' is not a message type that this head supports"));
  CHECK(count(head, Count::unknown_type) == 1);
}

TEST_CASE("a head does not answer a refusal", "[transport]") {
  Head head;
  Speaker speaker(head);
  REQUIRE(speaker.admitted);
  speaker.line.send_message(parts_of(to_message(refusal(RefusalCode::failed, "", "no"))));
  REQUIRE(head.messages.wait(2));
  CHECK(head.messages[1].message.type == "error");
  CHECK(count(head, Count::sent) == 0);
}

TEST_CASE("hellos beyond the rate limit are refused", "[transport]") {
  auto options = server_options();
  options.hellos_of_address = {.per_second = 0.001, .at_once = 3};
  Head head(options);
  std::vector<std::unique_ptr<RawConnection>> lines;
  for (int i = 0; i < 3; ++i) {
    lines.push_back(std::make_unique<RawConnection>(head.socket->endpoint()));
    REQUIRE(lines.back()->shake_hands());
    lines.back()->send_message(hello());
  }
  REQUIRE(head.messages.wait(3));
  RawConnection fourth(head.socket->endpoint());
  REQUIRE(fourth.shake_hands());
  for (int i = 0; i < 20; ++i) fourth.send_message(hello());
  REQUIRE(head.refused.wait());
  CHECK(head.refused[0] == "sends hello too often");
  // Peers with a session may repeat hello as often as they like.
  lines[0]->send_message(hello());
  REQUIRE(head.messages.wait(4));
  CHECK(head.connected.count() == 3);
}

TEST_CASE("a flood of random bytes is counted, ends its connections and takes no memory",
          "[transport]") {
  Head head;
  REQUIRE(serves(head));
  const auto flood = [&] {
    RawConnection line(head.socket->endpoint());
    if (!line.shake_hands()) return false;
    for (int i = 0; i < 2000; ++i) line.send_message({std::string(100, 'x'), "y", "z"});
    return line.closed();
  };
  REQUIRE(flood());
  const auto before = heap_bytes();
  for (int i = 0; i < 20; ++i) REQUIRE(flood());
  CHECK(heap_bytes() < before + (std::size_t{4} << 20));
  // After the first ten bad messages each new connection could send at most one.
  CHECK(count(head, Count::malformed) >= 30);
  CHECK(count(head, Count::malformed) < 2000);
  CHECK(serves(head));
}

TEST_CASE("a node disconnects from a head that sends invalid messages", "[transport]") {
  zmq::context_t context;
  zmq::socket_t head(context, zmq::socket_type::router);
  head.set(zmq::sockopt::linger, 0);
  head.bind("tcp://127.0.0.1:0");
  Node node(dial_options(head.get(zmq::sockopt::last_endpoint)));
  // The node's hello contains its routing id.
  zmq::message_t id;
  REQUIRE(head.recv(id));
  const auto say = [&](const std::vector<std::string>& parts) {
    head.send(zmq::const_buffer(id.data(), id.size()), zmq::send_flags::sndmore);
    for (std::size_t i = 0; i < parts.size(); ++i)
      head.send(zmq::buffer(parts[i]),
                i + 1 < parts.size() ? zmq::send_flags::sndmore : zmq::send_flags::none);
  };
  say(parts_of(message_of("of.tomorrow")));
  say(parts_of(message_of("run.stop")));
  say(with_body("node.welcome", "\x81"));
  say(parts_of(message_of("node.welcome")));
  REQUIRE(node.messages.wait());
  CHECK(node.messages[0].type == "node.welcome");
  // The node tells the head which type it does not handle.
  const auto refused = [&] {
    for (int part = 0; part < 64; ++part) {
      zmq::message_t got;
      if (!head.recv(got)) return false;
      if (got.to_string_view().find("no handler for messages of type 'of.tomorrow'") !=
          std::string_view::npos)
        return true;
    }
    return false;
  };
  head.set(zmq::sockopt::rcvtimeo, 30'000);
  CHECK(refused());
  CHECK(node.socket->counters()[Count::unknown_type] == 1);
  CHECK(node.socket->counters()[Count::wrong_role] == 1);
  CHECK(node.socket->counters()[Count::malformed] == 1);
  CHECK(node.gone.count() == 0);
  for (int i = 0; i < 8; ++i) say({"nonsense"});
  REQUIRE(node.gone.wait());
  CHECK(node.gone[0].gone == Gone::struck_off);
}

TEST_CASE("a node does not connect to a server that is not a head", "[transport]") {
  // The server answers with HTTP.
  zmq::context_t context;
  zmq::socket_t web(context, zmq::socket_type::stream);
  web.set(zmq::sockopt::linger, 0);
  web.bind("tcp://127.0.0.1:0");
  auto options = dial_options(web.get(zmq::sockopt::last_endpoint));
  options.link.handshake = 200ms;
  Node node(options);
  for (int i = 0; i < 2; ++i) {
    zmq::message_t id, data;
    REQUIRE(web.recv(id));
    REQUIRE(web.recv(data));
    if (data.size() > 0) continue;
    web.send(zmq::const_buffer(id.data(), id.size()), zmq::send_flags::sndmore);
    web.send(zmq::str_buffer("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\nno no no no no"),
             zmq::send_flags::none);
  }
  REQUIRE(node.refused.wait());
  CHECK(node.connected.count() == 0);
}
