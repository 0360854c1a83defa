#include <filesystem>
#include <fstream>
#include <future>
#include <numeric>

#include "catch.h"
#include "ends.h"
#include "peer.h"
#include "peer_order.h"

using namespace troupe;
using namespace troupe::transport;

namespace {

/// Counts the shared memory segments with names like ours.
int segments() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
    count += entry.path().filename().string().find("troupe") != std::string::npos ? 1 : 0;
  return count;
}

bool is_bound(const std::string& name) {
  std::ifstream sockets("/proc/net/unix");
  for (std::string line; std::getline(sockets, line);)
    if (line.find(name) != std::string::npos) return true;
  return false;
}

/// Counts this process' mappings of channel segments.
int mappings() {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);)
    count += line.find("troupe-channel") != std::string::npos ? 1 : 0;
  return count;
}

}  // namespace

TEST_CASE("a receiver hears at once that its sender was killed", "[transport]") {
  const std::string by = GENERATE("shm", "tcp");
  INFO(by);
  std::string address, wrong;
  std::vector<Tensor> kept;
  MemoryPool pool;
  {
    Inbox inbox([&](const Parcel& parcel, std::uint64_t index) {
      if (wrong.empty()) wrong = difference(parcel, 8, index, peer_sizes);
      for (auto& tensor : parcel.tensors) kept.push_back(std::move(tensor));
    });
    const OwnThread thread = std::make_unique<ChannelThread>();
    const DoorOrder order{peer_epoch};
    auto door = by == "shm" ? open_shm_door(*thread, order).value()
                            : open_tcp_door(*thread, "127.0.0.1:0", order).value();
    address = door->address();
    const auto receiver = door->expect(peer_token, {peer_bound, &pool, inbox.listener()});
    Peer peer({"send", by, address, "20", "8"});
    REQUIRE(peer.line() == "sent");
    const auto killed_at = std::chrono::steady_clock::now();
    peer.kill();
    const auto end = inbox.wait_for_end();
    REQUIRE(end);
    CHECK(std::chrono::steady_clock::now() - killed_at < std::chrono::seconds(5));
    CHECK(end->why == ChannelEnd::Why::lost);
    CHECK((end->text.starts_with("the other process died") ||
           end->text.starts_with("the sender died")));
    // Parcels that had left the sender still arrive. Over TCP that may be less than all.
    if (by == "shm") CHECK(inbox.parcels() == 20);
    CHECK(wrong == "");
  }
  // Received tensors stay valid, whatever happens to the sender and the channel.
  for (const auto& tensor : kept) {
    const auto* bytes = static_cast<const std::byte*>(tensor.raw());
    CHECK(std::accumulate(bytes, bytes + tensor.bytes(), 0u,
                          [](unsigned sum, std::byte b) { return sum + unsigned(b); }) < ~0u);
  }
  CHECK(mappings() == (by == "shm" ? 1 : 0));
  kept.clear();
  CHECK(mappings() == 0);
  CHECK(segments() == 0);
  if (by == "shm") CHECK(!is_bound(address));
}

TEST_CASE("a sender hears at once that its receiver was killed", "[transport]") {
  const std::string by = GENERATE("shm", "tcp");
  INFO(by);
  std::string address;
  MemoryPool pool;
  {
    Inbox back;
    const OwnThread thread = std::make_unique<ChannelThread>();
    Peer peer({"receive", by, "20", "9"});
    address = peer.line();
    const Sending sending{peer_epoch, peer_token, peer_bound, &pool, back.on_end()};
    auto sender = by == "shm" ? connect_shm(*thread, address, sending)
                              : connect_tcp(*thread, address, sending);
    REQUIRE(sender.ok());
    for (std::uint64_t i = 0; i < 20; ++i) {
      const auto parcel = made_parcel(9, i, peer_sizes, **sender, pool);
      REQUIRE(send_in_time(**sender, parcel.head, parcel.tensors).ok());
    }
    REQUIRE(peer.line() == "received");
    const auto killed_at = std::chrono::steady_clock::now();
    peer.kill();
    const auto end = back.wait_for_end();
    REQUIRE(end);
    CHECK(std::chrono::steady_clock::now() - killed_at < std::chrono::seconds(5));
    CHECK(end->why == ChannelEnd::Why::lost);
    CHECK(!(*sender)->send({}, {}).ok());
    CHECK(!(*sender)->close(wait_limit).ok());
  }
  CHECK(mappings() == 0);
  CHECK(segments() == 0);
  if (by == "shm") CHECK(!is_bound(address));
}

TEST_CASE("parcels sent before the sender was killed arrive even at a busy receiver",
          "[transport]") {
  // The receiver's thread is blocked, so the records are still in the segment when the sender dies.
  std::promise<void> gate;
  auto opened = gate.get_future().share();
  std::string wrong;
  Inbox inbox([&](const Parcel& parcel, std::uint64_t index) {
    if (index == 0) opened.wait();
    if (wrong.empty()) wrong = difference(parcel, 8, index, peer_sizes);
  });
  MemoryPool pool;
  {
    const OwnThread thread = std::make_unique<ChannelThread>();
    auto door = open_shm_door(*thread, {peer_epoch}).value();
    const auto receiver = door->expect(peer_token, {peer_bound, &pool, inbox.listener()});
    Peer peer({"send", "shm", door->address(), "4", "8"});
    REQUIRE(peer.line() == "sent");
    peer.kill();
    gate.set_value();
    const auto end = inbox.wait_for_end();
    REQUIRE(end);
    CHECK(end->why == ChannelEnd::Why::lost);
    CHECK(inbox.parcels() == 4);
    CHECK(wrong == "");
  }
}
