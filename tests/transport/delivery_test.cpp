#include "transport/control/delivery.h"

#include <algorithm>
#include <deque>
#include <random>

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

std::vector<std::uint64_t> seqs_of(const std::vector<Message>& messages) {
  std::vector<std::uint64_t> seqs;
  for (const auto& message : messages) seqs.push_back(message.seq);
  return seqs;
}

using Seqs = std::vector<std::uint64_t>;

}  // namespace

TEST_CASE("sent messages are numbered and kept until they are acknowledged", "[transport]") {
  SendWindow window;
  for (std::uint64_t i = 1; i <= 3; ++i) {
    auto message = numbered("step_done");
    REQUIRE(window.stamp(message));
    CHECK(message.seq == i);
  }
  CHECK(seqs_of(window.unacknowledged()) == Seqs{1, 2, 3});
  REQUIRE(window.acknowledge(2));
  CHECK(seqs_of(window.unacknowledged()) == Seqs{3});
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

TEST_CASE("messages that arrive in order are delivered at once", "[transport]") {
  ReceiveWindow window(life);
  for (std::uint64_t i = 1; i <= 3; ++i) {
    const auto verdict = window.accept(step_done(i));
    CHECK(verdict.what == What::passed);
    CHECK(seqs_of(verdict.now) == Seqs{i});
  }
  CHECK(window.ack() == 3);
}

TEST_CASE("a repeated message is dropped", "[transport]") {
  ReceiveWindow window(life);
  (void)window.accept(step_done(1));
  CHECK(window.accept(step_done(1)).what == What::repeated);
  (void)window.accept(step_done(3));
  CHECK(window.accept(step_done(3)).what == What::repeated);
  CHECK(window.accept(step_done(3)).now.empty());
  CHECK(window.ack() == 1);
}

TEST_CASE("after a gap messages wait for the missing ones", "[transport]") {
  ReceiveWindow window(life);
  CHECK(window.accept(step_done(2)).what == What::held);
  CHECK(window.accept(step_done(4)).what == What::held);
  CHECK(window.ack() == 0);
  CHECK(seqs_of(window.accept(step_done(1)).now) == Seqs{1, 2});
  CHECK(window.ack() == 2);
  CHECK(seqs_of(window.accept(step_done(3)).now) == Seqs{3, 4});
  CHECK(window.held() == 0);
}

TEST_CASE("a heartbeat does not wait for missing messages", "[transport]") {
  ReceiveWindow window(life);
  const auto beat = window.accept(numbered("node.heartbeat", 2));
  CHECK(beat.what == What::passed);
  CHECK(seqs_of(beat.now) == Seqs{2});
  CHECK(window.ack() == 0);
  CHECK(window.accept(numbered("node.heartbeat", 2)).what == What::repeated);
  // The heartbeat was delivered once and still counts in the order.
  CHECK(seqs_of(window.accept(step_done(1)).now) == Seqs{1});
  CHECK(window.ack() == 2);
}

TEST_CASE("waiting messages are bounded in number and bytes", "[transport]") {
  ReceiveWindow window(life, {.messages = 4, .bytes = std::size_t{1} << 20});
  CHECK(window.accept(step_done(5)).what == What::beyond);
  CHECK(window.accept(step_done(4)).what == What::held);
  CHECK(window.accept(numbered("node.heartbeat", 1'000'000)).what == What::beyond);

  ReceiveWindow narrow(life, {.messages = 1000, .bytes = 100'000});
  auto large = step_done(2);
  large.payload = {std::string(60'000, 'x')};
  CHECK(narrow.accept(large).what == What::held);
  large.seq = 3;
  CHECK(narrow.accept(large).what == What::beyond);
  large.seq = 1;
  CHECK(narrow.accept(large).what == What::passed);
  large.seq = 3;
  CHECK(narrow.accept(large).what == What::passed);
}

TEST_CASE("a message of another incarnation, or without a number, is ignored", "[transport]") {
  ReceiveWindow window(life);
  auto other = step_done(1);
  other.incarnation = life + 1;
  CHECK(window.accept(other).what == What::stranger);
  CHECK(window.accept(step_done(0)).what == What::stranger);
  CHECK(window.ack() == 0);
}

TEST_CASE("every message arrives once and in order, even if connections break", "[transport]") {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    SendWindow sender({.messages = 16, .bytes = std::size_t{1} << 20});
    ReceiveWindow receiver(life, {.messages = 16, .bytes = std::size_t{1} << 20});
    std::deque<Message> line;
    Seqs ordered;
    std::vector<std::uint64_t> beats;
    for (int round = 0; round < 5000; ++round) {
      switch (random() % 8) {
        case 0: {  // The connection breaks: messages under way are lost and retransmitted.
          line.clear();
          for (auto& message : sender.unacknowledged()) line.push_back(std::move(message));
          break;
        }
        case 1:
          REQUIRE(sender.acknowledge(receiver.ack()));
          break;
        case 2:
        case 3:
        case 4: {
          auto message = numbered(random() % 2 ? "step_done" : "node.heartbeat");
          if (sender.stamp(message)) line.push_back(message);
          break;
        }
        default: {
          if (line.empty()) break;
          auto verdict = receiver.accept(line.front());
          line.pop_front();
          REQUIRE(verdict.what != What::beyond);
          for (const auto& message : verdict.now)
            (message.type == "step_done" ? ordered : beats).push_back(message.seq);
        }
      }
    }
    REQUIRE(sender.acknowledge(receiver.ack()));
    for (const auto& message : sender.unacknowledged())
      for (const auto& passed : receiver.accept(message).now)
        (passed.type == "step_done" ? ordered : beats).push_back(passed.seq);
    CHECK(receiver.ack() == sender.last());
    CHECK(std::ranges::is_sorted(ordered));
    CHECK(ordered.size() + beats.size() == sender.last());
    Seqs all = ordered;
    all.insert(all.end(), beats.begin(), beats.end());
    std::ranges::sort(all);
    CHECK(std::ranges::adjacent_find(all) == all.end());
    CHECK(ordered.size() > 100);
  }
}
