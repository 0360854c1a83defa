#include "transport/control/delivery.h"

#include <deque>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "catch.h"

using namespace troupe;
using namespace troupe::transport;

namespace {

using What = ReceiveWindow::What;

constexpr std::uint64_t life = 77;

Message numbered(std::string type, std::uint64_t seq = 0) {
  Message message;
  message.type = std::move(type);
  message.seq = seq;
  message.incarnation = life;
  return message;
}

Message step_done(std::uint64_t seq) { return numbered("step_done", seq); }

using Seqs = std::vector<std::uint64_t>;

/// Returns the numbers of the messages that are kept.
Seqs kept_by(SendWindow& window) {
  Seqs seqs;
  for (const Message* next = window.next_after(0); next; next = window.next_after(next->seq))
    seqs.push_back(next->seq);
  return seqs;
}

}  // namespace

TEST_CASE("sent messages are numbered and kept until they are acknowledged", "[transport]") {
  SendWindow window;
  for (std::uint64_t i = 1; i <= 3; ++i) {
    auto message = numbered("step_done");
    REQUIRE(window.stamp(message));
    CHECK(message.seq == i);
  }
  CHECK(kept_by(window) == Seqs{1, 2, 3});
  REQUIRE(window.acknowledge(2));
  CHECK(kept_by(window) == Seqs{3});
  // A late, old acknowledgement has no effect.
  REQUIRE(window.acknowledge(1));
  CHECK(window.waiting() == 1);
  CHECK(window.acknowledge(4).error().text ==
        "envelope.ack: found 4, wanted at most 3, which is the last that was sent");
  REQUIRE(window.acknowledge(3));
  CHECK(window.waiting() == 0);
}

TEST_CASE("the number of unacknowledged messages is bounded", "[transport]") {
  SendWindow window({.messages = 2, .bytes = std::size_t{1} << 20});
  auto message = numbered("step_done");
  REQUIRE(window.stamp(message));
  REQUIRE(window.stamp(message));
  CHECK_FALSE(window.stamp(message));
  REQUIRE(window.acknowledge(1));
  REQUIRE(window.stamp(message));
  CHECK(message.seq == 3);

  SendWindow narrow({.messages = 1000, .bytes = 100'000});
  message.payload = {std::string(60'000, 'x')};
  REQUIRE(narrow.stamp(message));
  CHECK_FALSE(narrow.stamp(message));
  REQUIRE(narrow.acknowledge(1));
  CHECK(narrow.stamp(message));
}

TEST_CASE("a sender finds the next message that a connection has not taken", "[transport]") {
  SendWindow window;
  CHECK(window.next_after(0) == nullptr);
  for (int i = 0; i < 4; ++i) {
    auto message = numbered("step_done");
    REQUIRE(window.stamp(message));
  }
  CHECK(window.next_after(2)->seq == 3);
  CHECK(window.next_after(4) == nullptr);
  REQUIRE(window.acknowledge(3));
  CHECK(window.next_after(1)->seq == 4);
}

TEST_CASE("a receiver takes each message once and in order", "[transport]") {
  ReceiveWindow window(life);
  for (std::uint64_t i = 1; i <= 3; ++i) CHECK(window.accept(step_done(i)) == What::next);
  CHECK(window.accept(step_done(3)) == What::repeated);
  CHECK(window.accept(step_done(1)) == What::repeated);
  CHECK(window.ack() == 3);
}

TEST_CASE("a receiver refuses a message before which another one is missing", "[transport]") {
  ReceiveWindow window(life);
  CHECK(window.accept(step_done(2)) == What::early);
  CHECK(window.accept(numbered("node.heartbeat", 1'000'000)) == What::early);
  CHECK(window.ack() == 0);
  CHECK(window.accept(step_done(1)) == What::next);
  CHECK(window.accept(step_done(2)) == What::next);
}

TEST_CASE("a message of another incarnation, or without a number, is ignored", "[transport]") {
  ReceiveWindow window(life);
  auto other = step_done(1);
  other.incarnation = life + 1;
  CHECK(window.accept(other) == What::stranger);
  CHECK(window.accept(step_done(0)) == What::stranger);
  CHECK(window.ack() == 0);
}

TEST_CASE("every message arrives once and in order, even if connections break", "[transport]") {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    SendWindow sender({.messages = 16, .bytes = std::size_t{1} << 20});
    ReceiveWindow receiver(life);
    std::deque<Message> line;
    std::uint64_t sent = 0, passed = 0;
    const auto send_all = [&] {
      for (const Message* next = sender.next_after(sent); next; next = sender.next_after(sent)) {
        line.push_back(*next);
        sent = next->seq;
      }
    };
    const auto hear = [&](const Message& message) {
      const auto what = receiver.accept(message);
      REQUIRE(what != What::early);
      if (what == What::next) REQUIRE(message.seq == ++passed);
    };
    for (int round = 0; round < 5000; ++round) {
      switch (random() % 8) {
        case 0:  // The connection breaks: messages under way are lost and retransmitted.
          line.clear();
          sent = 0;
          send_all();
          break;
        case 1:
          REQUIRE(sender.acknowledge(receiver.ack()));
          break;
        case 2:
        case 3:
        case 4: {
          auto message = numbered("step_done");
          if (sender.stamp(message)) send_all();
          break;
        }
        default: {
          if (line.empty()) break;
          hear(line.front());
          line.pop_front();
        }
      }
    }
    for (; !line.empty(); line.pop_front()) hear(line.front());
    CHECK(receiver.ack() == sender.last());
    CHECK(passed > 100);
  }
}
