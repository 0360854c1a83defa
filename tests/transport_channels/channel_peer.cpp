// The other end of a channel as a process of its own, for tests.
//
//     channel_peer send    shm|tcp ADDRESS COUNT SEED
//     channel_peer receive shm|tcp COUNT SEED
//
// A sender prints "sent". A receiver prints its address and then "received". Both end when their
// input ends.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "made_parcel.h"
#include "peer_order.h"
#include "transport/channels/channel_thread.h"
#include "transport/channels/door.h"
#include "transport/channels/shm_channel.h"
#include "transport/channels/tcp_channel.h"

namespace troupe::transport {
namespace {

void say(const std::string& line) {
  std::puts(line.c_str());
  std::fflush(stdout);
}

int fail(const std::string& why) {
  say("failed: " + why);
  return 1;
}

/// Waits until the test closes the other end.
void wait_for_input_to_end() {
  char byte = 0;
  while (read(STDIN_FILENO, &byte, 1) > 0) continue;
}

int send(const std::string& by, const std::string& address, std::uint64_t count,
         std::uint64_t seed) {
  MemoryPool pool;
  ChannelThread thread;
  const Sending sending{peer_epoch, peer_token, peer_bound, &pool, {}};
  auto sender =
      by == "shm" ? connect_shm(thread, address, sending) : connect_tcp(thread, address, sending);
  if (!sender) return fail(sender.error().text);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto parcel = made_parcel(seed, i, peer_sizes, **sender, pool);
    for (;;) {
      auto sent = (*sender)->send(parcel.head, parcel.tensors);
      if (sent) break;
      if (sent.error().text.find("bound") == std::string::npos) return fail(sent.error().text);
      std::this_thread::yield();
    }
  }
  say("sent");
  wait_for_input_to_end();
  const auto closed = (*sender)->close(std::chrono::seconds(60));
  return closed ? 0 : fail(closed.error().text);
}

int receive(const std::string& by, std::uint64_t count, std::uint64_t seed) {
  MemoryPool pool;
  ChannelThread thread;
  const DoorOrder order{peer_epoch};
  auto door =
      by == "shm" ? open_shm_door(thread, order) : open_tcp_door(thread, "127.0.0.1:0", order);
  if (!door) return fail(door.error().text);
  std::uint64_t received = 0;
  Listener listener;
  listener.on_parcel = [&](const Parcel& parcel) {
    const auto wrong = difference(parcel, seed, received, peer_sizes);
    if (!wrong.empty()) say("failed: " + wrong);
    if (++received == count) say("received");
  };
  listener.on_end = [](const ChannelEnd& end) { say("ended: " + end.text); };
  const auto receiver = (*door)->expect(peer_token, {peer_bound, &pool, listener});
  say((*door)->address());
  wait_for_input_to_end();
  return 0;
}

}  // namespace
}  // namespace troupe::transport

int main(int count, char** words) {
  using namespace troupe::transport;
  const auto number = [&](int i) { return std::strtoull(words[i], nullptr, 10); };
  if (count == 6 && std::string(words[1]) == "send")
    return send(words[2], words[3], number(4), number(5));
  if (count == 5 && std::string(words[1]) == "receive")
    return receive(words[2], number(3), number(4));
  return 2;
}
