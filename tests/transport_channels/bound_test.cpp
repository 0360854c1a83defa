#include <future>

#include "catch.h"
#include "ends.h"

using namespace troupe;
using namespace troupe::transport;

namespace {

/// Blocks a listener in its first call until open() is called.
class Gate {
 public:
  Inbox::Look look() {
    return [this](const Parcel&, std::uint64_t index) {
      if (index == 0) opened_.wait();
    };
  }
  void open() {
    if (!std::exchange(open_, true)) open_promise_.set_value();
  }
  ~Gate() { open(); }

 private:
  bool open_ = false;
  std::promise<void> open_promise_;
  std::shared_future<void> opened_ = open_promise_.get_future().share();
};

/// Opens the gate when a test ends, since the channel can end only after its thread has left the
/// gate.
struct OpenedAtTheEnd {
  Gate& gate;
  ~OpenedAtTheEnd() { gate.open(); }
};

}  // namespace

TEST_CASE("sending more parcels than the bound is an error and sends none of them", "[transport]") {
  const auto by = GENERATE(By::shm, By::tcp, By::tcp_sealed);
  INFO(to_string(by));
  Gate gate;
  Inbox back, inbox(gate.look());
  Ends ends(by, {1'000, 4}, inbox, back);
  const OpenedAtTheEnd opened{gate};
  // In shared memory a parcel's credit returns once the listener was called with it.
  int sent = 0;
  Status last = Done{};
  for (; sent < 100; ++sent) {
    last = ends.sender->send({}, {});
    if (!last.ok()) break;
  }
  CHECK(sent >= 4);
  CHECK(sent <= 5);
  REQUIRE(!last.ok());
  CHECK(last.error().text.find("4 parcels of at most 4") != std::string::npos);
  gate.open();
  REQUIRE(inbox.wait_for(static_cast<std::uint64_t>(sent)));
  CHECK(send_in_time(*ends.sender, {}, {}).ok());
  CHECK(inbox.wait_for(static_cast<std::uint64_t>(sent) + 1));
  CHECK(ends.sender->close(wait_limit).ok());
  CHECK(inbox.parcels() == static_cast<std::uint64_t>(sent) + 1);
}

TEST_CASE("more bytes than the bound are an error", "[transport]") {
  const auto by = GENERATE(By::hand, By::shm, By::tcp, By::tcp_sealed);
  INFO(to_string(by));
  Inbox back, inbox;
  Ends ends(by, {1'000, 4}, inbox, back);
  const Tensor large = Tensor::make(ends.sender_pool, {1'001}, DType::u8);
  const auto sent = ends.sender->send({}, {&large, 1});
  REQUIRE(!sent.ok());
  CHECK(sent.error().text.find("now one of 1001") != std::string::npos);
  const Tensor fits = Tensor::make(ends.sender_pool, {1'000}, DType::u8);
  CHECK(ends.sender->send({}, {&fits, 1}).ok());
  CHECK(inbox.wait_for(1));
}

TEST_CASE("sending never blocks, and tensors are kept until they are sent", "[transport]") {
  const auto by = GENERATE(By::shm, By::tcp, By::tcp_sealed);
  INFO(to_string(by));
  Gate gate;
  std::uint64_t right = 0;
  Inbox back, inbox([&, look = gate.look()](const Parcel&parcel, std::uint64_t index) {
    look(parcel, index);
    right += parcel.tensors[0].f32()[999'999] == static_cast<float>(index) ? 1 : 0;
  });
  Ends ends(by, {80'000'000, 20}, inbox, back);
  const OpenedAtTheEnd opened{gate};
  // 80 MB: more than connections buffer while nobody reads.
  for (int i = 0; i < 20; ++i) {
    Tensor tensor = Tensor::make(ends.sender_pool, {1'000'000});
    tensor.f32()[999'999] = static_cast<float>(i);
    REQUIRE(ends.sender->send({}, {&tensor, 1}).ok());
  }
  gate.open();
  CHECK(inbox.wait_for(20));
  CHECK(right == 20);
  CHECK(ends.sender->close(wait_limit).ok());
  CHECK(ends.sender_pool.counters().bytes_in_use == 0);
}

TEST_CASE("closing delivers everything that was sent", "[transport]") {
  const auto by = GENERATE(By::hand, By::shm, By::tcp, By::tcp_sealed);
  INFO(to_string(by));
  Inbox back, inbox;
  Ends ends(by, {8'000'000, 100}, inbox, back);
  for (int i = 0; i < 100; ++i) {
    const Tensor tensor = Tensor::make(ends.sender_pool, {20'000});
    REQUIRE(ends.sender->send({}, {&tensor, 1}).ok());
  }
  CHECK(ends.sender->close(wait_limit).ok());
  CHECK(inbox.parcels() == 100);
  const auto end = inbox.wait_for_end();
  REQUIRE(end);
  CHECK(end->why == ChannelEnd::Why::closed);
  CHECK(!ends.sender->send({}, {}).ok());
}

TEST_CASE("closing fails if parcels do not arrive before its timeout", "[transport]") {
  const auto by = GENERATE(By::shm, By::tcp, By::tcp_sealed);
  INFO(to_string(by));
  Gate gate;
  Inbox back, inbox(gate.look());
  Ends ends(by, {1'000, 4}, inbox, back);
  const OpenedAtTheEnd opened{gate};
  REQUIRE(ends.sender->send({}, {}).ok());
  const auto closed = ends.sender->close(std::chrono::milliseconds(20));
  REQUIRE(!closed.ok());
  CHECK(closed.error().text == "1 parcels have not arrived after 20 ms");
  gate.open();
}

TEST_CASE("a sender learns that its receiver has closed", "[transport]") {
  const auto by = GENERATE(By::hand, By::shm, By::tcp, By::tcp_sealed);
  INFO(to_string(by));
  Inbox back, inbox;
  Ends ends(by, {1'000, 4}, inbox, back);
  REQUIRE(ends.sender->send({}, {}).ok());
  REQUIRE(inbox.wait_for(1));
  ends.receiver.reset();
  const auto end = back.wait_for_end();
  REQUIRE(end);
  CHECK(end->why == ChannelEnd::Why::closed);
  const auto sent = ends.sender->send({}, {});
  REQUIRE(!sent.ok());
  CHECK(sent.error().text == "the channel was closed by its receiver");
}
