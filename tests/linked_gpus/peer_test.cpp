// Two processes with a GPU each: the same real one, or a simulated one for each.

#include "peer.h"

#include <chrono>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <thread>

#include "kernels/cuda/machine/arena.h"
#include "side.h"
#include "tests/catch.h"

using namespace troupe;
using namespace troupe::transport;

namespace {

/// Tries a link between two processes, which can be killed if they hang. Returns the reason if it
/// fails.
std::string why_two_cannot_meet() {
  Peer peers[2] = {Peer({}), Peer({})};
  std::string addresses[2];
  for (int i = 0; i < 2; ++i) {
    peers[i].say("open " + std::to_string(i) + " 1");
    addresses[i] = peers[i].line();
    if (addresses[i].empty() || addresses[i].starts_with("failed")) return addresses[i];
  }
  for (int i = 0; i < 2; ++i) peers[i].say("connect " + addresses[1 - i]);
  for (auto& peer : peers)
    if (auto told = peer.line(); told != "connected") return told;
  for (auto& peer : peers) peer.say("form");
  for (auto& peer : peers) {
    auto told = peer.line();
    if (told != "ready") return told.empty() ? "it takes too long" : told;
  }
  return "";
}

/// Opens a GPU. Returns null and prints the reason if there is none; then the test is skipped.
std::unique_ptr<LinkedGpu> open_gpu() {
  auto gpu = LinkedGpu::open();
  if (!gpu) {
    WARN("skipped: " << gpu.error().text);
    return nullptr;
  }
  if (!(*gpu)->may_be_refused) return std::move(*gpu);
  static const auto why = why_two_cannot_meet();
  if (why.empty()) return std::move(*gpu);
  WARN("skipped: two processes with one GPU get no links here: " << why);
  return nullptr;
}

/// Prepares both processes to play in this epoch.
std::unique_ptr<Side> begin(LinkedGpu& gpu, Peer& peer, std::uint64_t epoch, std::uint64_t count) {
  auto side = std::make_unique<Side>(0, gpu, epoch);
  peer.say("open 1 " + std::to_string(epoch));
  const auto connected = side->connect(peer.line());
  INFO((connected ? "" : connected.error().text));
  REQUIRE(connected.ok());
  peer.say("connect " + side->address());
  REQUIRE(peer.line() == "connected");
  peer.say("form");
  const auto formed = side->form();
  INFO((formed ? "" : formed.error().text));
  REQUIRE(formed.ok());
  REQUIRE(peer.line() == "ready");
  peer.say("play " + std::to_string(count));
  return side;
}

void play_all(LinkedGpu& gpu, Peer& peer, std::uint64_t epoch, std::uint64_t count) {
  auto side = begin(gpu, peer, epoch, count);
  const auto played = side->play(count, [&] { return side->has_played(count); });
  INFO((played ? "" : played.error().text));
  CHECK(played.ok());
  CHECK(peer.line() == "played");
  peer.say("leave");
  CHECK(peer.line() == "left");
  CHECK(side->leave());
  side.reset();
  CHECK(gpu.pool->counters().bytes_in_use == 0);
}

std::ptrdiff_t open_files() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return std::distance(begin(files), end(files));
}

/// Waits, since libraries release resources asynchronously.
bool comes_true(const std::function<bool()>& what) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!what() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  return what();
}

constexpr std::uint64_t without_end = 1'000'000'000;
// Other programs may use the GPU too, so small differences are ignored.
constexpr std::size_t hardly_any_memory = std::size_t{64} << 20;

}  // namespace

TEST_CASE("tensors travel between the GPUs of two processes without any changed bit") {
  const auto gpu = open_gpu();
  if (!gpu) return;
  Peer peer({});
  play_all(*gpu, peer, 1, 80);
}

TEST_CASE("each epoch has its own links and leaves neither files nor memory behind") {
  const auto gpu = open_gpu();
  if (!gpu) return;
  // Reserves all memory beforehand, since another piece would be another file with simulated GPUs.
  (void)gpu->pool->take(std::size_t{64} << 20);
  gpu->pool->trim();
  Peer peer({});
  play_all(*gpu, peer, 1, 20);
  const auto files = open_files();
  const auto room = kernels::cuda::room_of(0);
  REQUIRE(room.ok());
  for (std::uint64_t epoch = 2; epoch <= 5; ++epoch) play_all(*gpu, peer, epoch, 20);
  CHECK(comes_true([&] { return open_files() == files; }));
  CHECK(
      comes_true([&] { return kernels::cuda::room_of(0)->free + hardly_any_memory > room->free; }));
}

TEST_CASE("data from a process that is killed is intact, and a new process can replace it") {
  const auto gpu = open_gpu();
  if (!gpu) return;
  for (std::uint64_t epoch = 1; epoch <= 4; ++epoch) {
    Peer peer({});
    auto side = begin(*gpu, peer, epoch, without_end);
    const auto wanted = 10 * epoch;
    const auto played = side->play(without_end, [&] { return side->looked() >= wanted; });
    INFO((played ? "" : played.error().text));
    REQUIRE(played.ok());
    peer.kill();
    const auto after = side->play(without_end, [] { return false; });
    REQUIRE_FALSE(after.ok());
    const auto& why = after.error().text;
    INFO(why);
    const bool is_known = why.find("the other end is gone: its process has ended") != why.npos ||
                          why.find("NCCL: ") != why.npos ||
                          why.find("the other process died") != why.npos;
    CHECK(is_known);
    CHECK(side->leave());
    side.reset();
    CHECK(gpu->pool->counters().bytes_in_use == 0);
  }
  Peer peer({});
  play_all(*gpu, peer, 5, 20);
}

TEST_CASE("a process notices that the other one leaves, and remains usable") {
  const auto gpu = open_gpu();
  if (!gpu) return;
  Peer peer({});
  {
    auto side = begin(*gpu, peer, 1, without_end);
    const auto played = side->play(without_end, [&] { return side->looked() >= 10; });
    REQUIRE(played.ok());
    CHECK(side->leave());
  }
  const auto told = peer.line();
  INFO(told);
  CHECK(told.starts_with("failed: "));
  CHECK(told.find("is not what was sent") == told.npos);
  peer.say("leave");
  CHECK(peer.line() == "left");
  play_all(*gpu, peer, 2, 20);
}
