// Two processes with a GPU: the same one, or one that is played for each.

#include "peer.h"

#include <filesystem>
#include <iterator>
#include <memory>
#include <string>

#include "side.h"
#include "tests/catch.h"

using namespace troupe;
using namespace troupe::transport;

namespace {

/// Null where there is no GPU: then the test is left out, and says why.
std::unique_ptr<LinkedGpu> open_gpu() {
  auto gpu = LinkedGpu::open();
  if (gpu) return std::move(*gpu);
  WARN("skipped: " << gpu.error().text);
  return nullptr;
}

/// Both processes are ready to play, in this epoch.
std::unique_ptr<Side> begin(LinkedGpu& gpu, Peer& peer, std::uint64_t epoch, std::uint64_t count) {
  auto side = std::make_unique<Side>(0, gpu, epoch);
  peer.say("begin " + std::to_string(epoch) + " " + side->address());
  const auto connected = side->connect(peer.line());
  INFO((connected ? "" : connected.error().text));
  REQUIRE(connected.ok());
  peer.say("play " + std::to_string(count));
  const auto formed = side->form();
  INFO((formed ? "" : formed.error().text));
  REQUIRE(formed.ok());
  REQUIRE(peer.line() == "ready");
  return side;
}

void play_all(LinkedGpu& gpu, Peer& peer, std::uint64_t epoch, std::uint64_t count) {
  auto side = begin(gpu, peer, epoch, count);
  const auto played =
      side->play(count, [&] { return side->sent() == count && side->looked() == count; });
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

constexpr std::uint64_t without_end = 1'000'000'000;

}  // namespace

TEST_CASE("tensors go between the GPUs of two processes, bit by bit") {
  const auto gpu = open_gpu();
  if (!gpu) return;
  Peer peer({});
  play_all(*gpu, peer, 1, 80);
}

TEST_CASE("each epoch has links of its own, and leaves no file behind") {
  const auto gpu = open_gpu();
  if (!gpu) return;
  // As much memory as it will ever need: a piece more would be a file more where GPUs are played.
  (void)gpu->pool->take(std::size_t{64} << 20);
  gpu->pool->trim();
  Peer peer({});
  play_all(*gpu, peer, 1, 20);
  const auto files = open_files();
  for (std::uint64_t epoch = 2; epoch <= 5; ++epoch) play_all(*gpu, peer, epoch, 20);
  CHECK(open_files() == files);
}

TEST_CASE("what came from a process that is killed is right, and another one takes its place") {
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
                          why.find("lost") != why.npos;
    CHECK(is_known);
    CHECK(side->leave());
    side.reset();
    CHECK(gpu->pool->counters().bytes_in_use == 0);
  }
  Peer peer({});
  play_all(*gpu, peer, 5, 20);
}

TEST_CASE("a process that leaves in the midst of it is noticed, and stays sane itself") {
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
