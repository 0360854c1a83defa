#include "transport/control/conversation.h"

#include <deque>
#include <random>

#include "catch.h"

using namespace troupe;
using namespace troupe::transport;

namespace {

Message order(int number) {
  Message message;
  message.type = "prepare";
  message.body.set("number", number);
  return message;
}

/// Two ends, and a connection that loses everything under way when it is cut. Each direction takes
/// no message while its queue is full.
struct Pair {
  Conversation head{11}, node{22};
  std::deque<Message> to_head, to_node;
  std::vector<int> head_heard, node_heard;
  bool is_full = false;
  int acks = 0;

  void connect() {
    // The node sends its hello, the head its welcome.
    REQUIRE(head.resume(22, node.ack(), into(to_node)));
    REQUIRE(node.resume(11, head.ack(), into(to_head)));
  }
  void cut() {
    head.pause();
    node.pause();
    to_head.clear();
    to_node.clear();
  }
  Conversation::Send into(std::deque<Message>& wire) {
    return [this, &wire](const Message& message) -> Status {
      if (is_full) return Error{"the queue is full"};
      wire.push_back(message);
      return Done{};
    };
  }
  bool deliver(std::deque<Message>& wire, Conversation& end, std::vector<int>& heard) {
    if (wire.empty()) return false;
    auto message = std::move(wire.front());
    wire.pop_front();
    acks += message.type == "ack" ? 1 : 0;
    const auto now = end.hear(std::move(message));
    REQUIRE(now);
    if (*now) heard.push_back(static_cast<int>(*(*now)->body.find("number")->integer()));
    return true;
  }
  bool deliver_to_node() { return deliver(to_node, node, node_heard); }
  bool deliver_to_head() { return deliver(to_head, head, head_heard); }
};

std::vector<int> up_to(int count) {
  std::vector<int> numbers;
  for (int i = 0; i < count; ++i) numbers.push_back(i);
  return numbers;
}

}  // namespace

TEST_CASE("messages over breaking connections arrive once and in order", "[transport]") {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    Pair pair;
    pair.connect();
    int said = 0, answered = 0;
    for (int i = 0; i < 400; ++i) switch (random() % 9) {
        case 8:
          pair.is_full = !pair.is_full;
          break;
        case 0:
          pair.cut();
          // A message sent now waits for the next connection.
          REQUIRE(pair.head.say(order(said++)));
          pair.connect();
          break;
        case 1:
        case 2:
          REQUIRE(pair.head.say(order(said++)));
          break;
        case 3:
          REQUIRE(pair.node.say(order(answered++)));
          break;
        case 4:
        case 5:
          pair.deliver_to_node();
          break;
        default:
          pair.deliver_to_head();
      }
    pair.is_full = false;
    // The next message takes along what a full queue did not take.
    REQUIRE(pair.head.say(order(said++)));
    REQUIRE(pair.node.say(order(answered++)));
    while (pair.deliver_to_node() || pair.deliver_to_head()) {
    }
    INFO("seed " << seed);
    CHECK(pair.node_heard == up_to(said));
    CHECK(pair.head_heard == up_to(answered));
  }
}

TEST_CASE("an end that only receives still acknowledges so the sender can continue",
          "[transport]") {
  Pair pair;
  pair.connect();
  for (int i = 0; i < 5000; ++i) {
    REQUIRE(pair.head.say(order(i)));
    while (pair.deliver_to_node() || pair.deliver_to_head()) {
    }
  }
  CHECK(pair.node_heard == up_to(5000));
  CHECK(pair.acks == 5000 / 64);
}

TEST_CASE("sending fails after 1,024 unacknowledged messages", "[transport]") {
  Pair pair;
  pair.connect();
  Status said = Done{};
  int count = 0;
  for (; said && count < 10'000; ++count) said = pair.head.say(order(count));
  REQUIRE_FALSE(said);
  CHECK(count == 1025);
  CHECK(said.error().text.find("prepare: the other end has not acknowledged 1024 messages") == 0);
}

TEST_CASE("messages that a full queue did not take follow in order", "[transport]") {
  Pair pair;
  pair.connect();
  pair.is_full = true;
  REQUIRE(pair.head.say(order(0)));
  REQUIRE(pair.head.say(order(1)));
  pair.is_full = false;
  SECTION("with the next message") {
    REQUIRE(pair.head.say(order(2)));
    while (pair.deliver_to_node()) {
    }
    CHECK(pair.node_heard == up_to(3));
  }
  SECTION("when the other end says something, be it a heartbeat") {
    auto pulse = order(7);
    pulse.type = "player_pulse";
    REQUIRE(pair.node.say(pulse));
    CHECK(pair.deliver_to_head());
    while (pair.deliver_to_node()) {
    }
    CHECK(pair.node_heard == up_to(2));
  }
  SECTION("on the next connection") {
    pair.cut();
    pair.connect();
    while (pair.deliver_to_node()) {
    }
    CHECK(pair.node_heard == up_to(2));
  }
}

TEST_CASE("a conversation refuses a message before which another one is missing", "[transport]") {
  Pair pair;
  pair.connect();
  auto early = order(1);
  early.incarnation = 11;
  early.seq = 2;
  const auto heard = pair.node.hear(early);
  REQUIRE_FALSE(heard);
  CHECK(heard.error().text == "envelope.seq: found 2, wanted 1, which has not come");
}

TEST_CASE("a message that need not arrive is dropped if there is no connection", "[transport]") {
  Pair pair;
  Message pulse = order(7);
  pulse.type = "player_pulse";
  REQUIRE(pair.node.say(pulse));
  pair.connect();
  CHECK_FALSE(pair.deliver_to_head());
  REQUIRE(pair.node.say(pulse));
  CHECK(pair.deliver_to_head());
  CHECK(pair.head_heard == std::vector<int>{7});
}

TEST_CASE("a conversation refuses another process at the other end", "[transport]") {
  Pair pair;
  pair.connect();
  pair.cut();
  const auto resumed = pair.node.resume(12, 0, pair.into(pair.to_head));
  REQUIRE_FALSE(resumed);
  CHECK(resumed.error().text.find("found process 12 at the other end") == 0);
  pair.connect();

  Message of_another = order(1);
  of_another.incarnation = 12;
  of_another.seq = 1;
  CHECK_FALSE(pair.node.hear(of_another)->has_value());
  Message too_much = order(1);
  too_much.incarnation = 11;
  too_much.seq = 1;
  too_much.ack = 5;
  const auto heard = pair.node.hear(too_much);
  REQUIRE_FALSE(heard);
  CHECK(heard.error().text.find("envelope.ack: found 5, wanted at most 0") == 0);
}
