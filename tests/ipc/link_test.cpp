// Tests of links alone, with both ends in this process and GPUs whose queues stop as long as the
// test wants, and with faulty other ends.

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/memory/stream.h"
#include "kernels/copy.h"
#include "linked_gpu.h"
#include "tests/catch.h"
#include "tests/cuda_on_cores/driver.h"
#include "tests/cuda_on_cores/queue.h"
#include "transport/links/ipc_fabric.h"
#include "transport/links/ipc_socket.h"

using namespace troupe;
using namespace troupe::transport;

namespace {

using Phase = LinkReport::Phase;

std::unique_ptr<LinkedGpu> open_gpu(unsigned most_at_a_look) {
  cuda_on_cores::set_temper(
      {.seed = 1, .most_at_a_look = most_at_a_look, .fails_after = {}, .stops_after = {}});
  auto gpu = LinkedGpu::open();
  REQUIRE(gpu.ok());
  return std::move(*gpu);
}

/// Opens a GPU that works only while somebody waits.
std::unique_ptr<LinkedGpu> open_late_gpu() { return open_gpu(0); }
std::unique_ptr<LinkedGpu> open_prompt_gpu() { return open_gpu(8); }

/// Both ends of a link.
struct Pair {
  Pair(LinkedGpu& one_gpu, LinkedGpu& other_gpu)
      : sender(one_gpu),
        receiver(other_gpu),
        from(Tensor::make(*sender.pool, {count})),
        to(Tensor::make(*receiver.pool, {count})) {
    const auto id = sender.fabric->name_link();
    REQUIRE(id.ok());
    auto one = sender.fabric->begin(*id, LinkSide::sends);
    auto other = receiver.fabric->begin(*id, LinkSide::receives);
    REQUIRE((one.ok() && other.ok()));
    sends = std::move(*one);
    receives = std::move(*other);
    look(3);
    REQUIRE(sends->report().phase == Phase::ready);
    REQUIRE(receives->report().phase == Phase::ready);
  }
  ~Pair() {
    end(sender, sends);
    end(receiver, receives);
  }
  static void end(LinkedGpu& gpu, std::unique_ptr<Link>& link) {
    std::vector<std::unique_ptr<Link>> links;
    if (link) links.push_back(std::move(link));
    if (!links.empty()) gpu.fabric->end(std::move(links));
    gpu.computes->wait();
    gpu.copies->wait();
    CHECK(gpu.fabric->ended());
  }

  void look(int times = 20) {
    for (int i = 0; i < times; ++i) {
      if (sends) (void)sends->report();
      if (receives) (void)receives->report();
    }
  }
  /// Makes room at the receiver; the sender posts numbers that its device has made.
  void post(float number) {
    Stream stream(*sender.pool, *sender.computes);
    kernels::fill(stream, number, from.f32(), count);
    stream.wait();
    const Piece there{static_cast<std::byte*>(to.raw()), to.bytes()};
    const Piece here{static_cast<std::byte*>(from.raw()), from.bytes()};
    receives->post({&there, 1});
    sends->post({&here, 1});
  }
  float received() {
    Stream stream(*receiver.pool, *receiver.computes);
    const Tensor here = stream.to_host(to);
    stream.wait();
    return here.numbers<float>()[count - 1];
  }

  static constexpr std::int64_t count = 1000;
  LinkedGpu &sender, &receiver;
  std::unique_ptr<Link> sends, receives;
  Tensor from, to;
};

/// Returns a word of the other end.
IpcWord word(IpcKind kind, std::uint64_t number, std::vector<MemoryRange> ranges) {
  return {kind, number, std::move(ranges), {}};
}

/// A receiving link; the test acts as the other end.
struct Received {
  Received() : gpu(open_prompt_gpu()) {
    auto named = listen_for_ipc();
    REQUIRE(named.ok());
    LinkId id;
    std::memcpy(id.bytes.data(), named->name.data(), named->name.size());
    auto begun = gpu->fabric->begin(id, LinkSide::receives);
    REQUIRE(begun.ok());
    link = std::move(*begun);
    auto accepted = accept_ipc(named->listening);
    REQUIRE(accepted);
    number = accepted.number();
    other.emplace(std::move(accepted));
  }
  ~Received() { Pair::end(*gpu, link); }

  void post(std::size_t bytes) {
    room = gpu->pool->take(bytes);
    const Piece piece{room.get()->memory, bytes};
    link->post({&piece, 1});
  }
  std::string why() {
    for (int i = 0; i < 20; ++i)
      if (link->report().phase == Phase::broken) return link->why_broken();
    return "nothing";
  }

  std::unique_ptr<LinkedGpu> gpu;
  std::unique_ptr<Link> link;
  std::optional<IpcSocket> other;
  int number = -1;  // The number of its socket.
  BlockHandle room;
};

}  // namespace

TEST_CASE("a tensor is transferred although both devices have earlier work pending") {
  const auto from = open_late_gpu(), to = open_late_gpu();
  Pair pair(*from, *to);
  pair.post(7);
  std::vector<Tensor> others;
  const auto give_work = [&](LinkedGpu& gpu) {
    Stream stream(*gpu.pool, *gpu.computes);
    kernels::fill(stream, 1, others.emplace_back(Tensor::make(*gpu.pool, {10})).f32(), 10);
    return gpu.computes->mark();
  };
  const auto behind_one = give_work(*from), behind_other = give_work(*to);
  pair.look();
  to->copies->wait();
  pair.look();
  CHECK(pair.receives->report().ended == 1);
  CHECK(pair.sends->report().ended == 1);
  CHECK(from->computes->passed().value() < behind_one);
  CHECK(to->computes->passed().value() < behind_other);
  CHECK(pair.received() == 7);
  from->computes->wait();
}

TEST_CASE("a copy is issued only once its data is ready") {
  const auto from = open_prompt_gpu(), to = open_late_gpu();
  Pair pair(*from, *to);
  pair.post(7);
  pair.look();
  CHECK(pair.receives->report().issued == 0);
  CHECK(pair.sends->report().ended == 0);
  to->copies->wait();
  pair.look();
  CHECK(pair.receives->report().issued == 1);
  CHECK(pair.receives->report().ended == 1);
  CHECK(pair.sends->report().ended == 1);
  CHECK(pair.received() == 7);
}

TEST_CASE("a transfer that is given up during its copy is dropped") {
  const auto from = open_prompt_gpu(), to = open_late_gpu();
  Pair pair(*from, *to);
  pair.post(7);
  pair.look();
  Pair::end(*from, pair.sends);
  to->copies->wait();
  const auto report = pair.receives->report();
  CHECK(report.phase == Phase::broken);
  CHECK(report.ended == 0);
  CHECK(pair.receives->why_broken() ==
        "the other end is gone: its process has ended, or has given the link up");
}

TEST_CASE("a link that ends during a copy releases its memory when the copy is done") {
  const auto from = open_prompt_gpu(), to = open_late_gpu();
  Pair pair(*from, *to);
  pair.post(7);
  pair.look();
  std::vector<std::unique_ptr<Link>> links;
  links.push_back(std::move(pair.receives));
  to->fabric->end(std::move(links));
  CHECK_FALSE(to->fabric->ended());
  to->copies->wait();
  CHECK(to->fabric->ended());
  CHECK(pair.sends->report().phase == Phase::broken);
}

TEST_CASE("a link stays usable after the other end closed, until its next use") {
  const auto from = open_prompt_gpu(), to = open_prompt_gpu();
  Pair pair(*from, *to);
  pair.post(7);
  pair.look(100);
  REQUIRE(pair.sends->report().ended == 1);
  Pair::end(*to, pair.receives);
  CHECK(pair.sends->report().phase == Phase::ready);
  const Piece here{static_cast<std::byte*>(pair.from.raw()), pair.from.bytes()};
  pair.sends->post({&here, 1});
  CHECK(pair.sends->report().phase == Phase::broken);
}

TEST_CASE("a device that fails breaks the links by which it receives") {
  const auto from = open_prompt_gpu(), to = open_prompt_gpu();
  Pair pair(*from, *to);
  pair.post(7);
  cuda_on_cores::let_all_fail();
  pair.look();
  CHECK(pair.receives->report().phase == Phase::broken);
  CHECK(pair.receives->why_broken() == "CUDA: a kernel went wrong");
  cuda_on_cores::set_temper({});
}

TEST_CASE("nobody can reach a link that was not named") {
  const auto gpu = open_prompt_gpu();
  const LinkId id;
  CHECK_FALSE(gpu->fabric->begin(id, LinkSide::sends).ok());
  const auto begun = gpu->fabric->begin(id, LinkSide::receives);
  REQUIRE_FALSE(begun.ok());
  LinkId other;
  std::memcpy(other.bytes.data(), "troupe/nobody", 13);
  const auto reached = gpu->fabric->begin(other, LinkSide::receives);
  REQUIRE_FALSE(reached.ok());
  CHECK(reached.error().text == "cannot reach the other end of a link: Connection refused");
}

TEST_CASE("another user cannot connect to a link") {
  if (geteuid() != 0) {
    WARN("skipped: only root can play another user");
    return;
  }
  const auto named = listen_for_ipc();
  REQUIRE(named.ok());
  REQUIRE(seteuid(65534) == 0);
  const auto stranger = connect_ipc(named->name);
  const auto wrong = stranger ? std::string() : stranger.error().text;
  REQUIRE(seteuid(0) == 0);
  CHECK(wrong == "the other end of a link is another user's");
  CHECK_FALSE(accept_ipc(named->listening));
  const auto own = connect_ipc(named->name);
  CHECK(own.ok());
  CHECK(accept_ipc(named->listening));
}

TEST_CASE("a receiver rejects every invalid message") {
  constexpr std::size_t reserved = std::size_t{1} << 20;
  Received received;
  auto& other = *received.other;
  const auto open = [&] { other.say(word(IpcKind::opening, 0, {{0, reserved}})); };

  SECTION("an offer before the memory is open") {
    other.say(word(IpcKind::offer, 1, {{0, 64}}));
    CHECK(received.why() == "the other end offers what is not its turn");
  }
  SECTION("memory that is opened twice") {
    open();
    open();
    CHECK(received.why() == "the other end opens its memory twice, or not at all");
  }
  SECTION("a piece without a file") {
    open();
    other.say(word(IpcKind::piece, 0, {{0, 65536}}));
    CHECK(received.why() == "the other end shows no piece of its memory");
  }
  SECTION("a piece that is none of it") {
    open();
    auto piece = word(IpcKind::piece, 0, {{reserved - 4096, 65536}});
    piece.file = Descriptor(dup(0));
    other.say(std::move(piece));
    CHECK(received.why() ==
          "found a piece of memory at 1044480 of 65536 bytes, which is none of 1048576 or is there "
          "already");
  }
  SECTION("a file that is no memory") {
    open();
    auto piece = word(IpcKind::piece, 0, {{0, 65536}});
    piece.file = Descriptor(dup(received.number));
    other.say(std::move(piece));
    CHECK(received.why() == "another process' memory cannot be mapped for this GPU");
  }
  SECTION("memory that was not shown") {
    open();
    (void)received.link->report();
    received.post(64);
    other.say(word(IpcKind::offer, 1, {{128, 64}}));
    CHECK(received.why() == "the other end offers other memory than it has shown");
  }
  SECTION("memory beyond all addresses") {
    open();
    (void)received.link->report();
    received.post(64);
    other.say(word(IpcKind::offer, 1, {{~std::size_t{0} - 32, 64}}));
    CHECK(received.why() == "the other end offers other memory than it has shown");
  }
  SECTION("other tensors than the parcel has") {
    open();
    (void)received.link->report();
    received.post(64);
    other.say(word(IpcKind::offer, 1, {{0, 64}, {64, 64}}));
    CHECK(received.why() == "the other end offers other tensors than it has said");
  }
  SECTION("words of a sender to a sender") {
    other.say(word(IpcKind::taken, 1, {}));
    CHECK(received.why() == "the other end says what only a receiver has to say");
  }
  SECTION("what is no word") {
    REQUIRE(send(received.number, "hello, here I am.", 17, 0) == 17);
    CHECK(received.why() == "the other end of a link says what has no meaning");
  }
  SECTION("a word that is too long") {
    const std::vector<char> bytes(70'000);
    REQUIRE(send(received.number, bytes.data(), bytes.size(), 0) > 0);
    CHECK(received.why() == "the other end of a link says what has no meaning");
  }
}

TEST_CASE("a sender rejects every invalid message") {
  const auto gpu = open_prompt_gpu();
  const auto id = gpu->fabric->name_link();
  REQUIRE(id.ok());
  auto link = gpu->fabric->begin(*id, LinkSide::sends);
  REQUIRE(link.ok());
  auto socket = connect_ipc(reinterpret_cast<const char*>(id->bytes.data()));
  REQUIRE(socket.ok());
  IpcSocket other(std::move(*socket));
  CHECK((*link)->report().phase == Phase::ready);
  other.say(word(IpcKind::taken, 1, {}));
  CHECK((*link)->report().phase == Phase::broken);
  CHECK((*link)->why_broken() == "the other end takes what it was not offered");
  Pair::end(*gpu, *link);
}

TEST_CASE("messages that find no room are sent later, in order") {
  int numbers[2] = {};
  REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, numbers) == 0);
  IpcSocket one{Descriptor(numbers[0])}, other{Descriptor(numbers[1])};
  const std::vector<MemoryRange> many(most_ipc_ranges, MemoryRange{1, 2});
  for (std::uint64_t number = 1; number <= 50; ++number)
    one.say(word(IpcKind::offer, number, many));
  for (std::uint64_t number = 1; number <= 50; ++number) {
    auto heard = other.hear();
    REQUIRE(heard.ok());
    REQUIRE(heard->has_value());
    CHECK((*heard)->number == number);
    CHECK((*heard)->ranges == many);
    (void)one.hear();  // Flushes its pending messages.
  }
}
