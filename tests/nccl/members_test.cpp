// Tests of simulated GPUs: links between several GPUs of one process.

#include <cuda_runtime.h>
#include <nccl.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/catch.h"
#include "tests/cuda_on_cores/nccl_operation.h"
#include "transport/links/nccl_fabric.h"

using namespace troupe;
using namespace troupe::transport;

namespace {

using Phase = LinkReport::Phase;

constexpr std::chrono::seconds longest{60};

/// A GPU with at most one link.
struct Member {
  explicit Member(int gpu) : gpu(gpu) {
    enter();
    REQUIRE(cudaStreamCreateWithFlags(&queue, cudaStreamNonBlocking) == cudaSuccess);
    auto opened = open_nccl_fabric({.device = gpu, .queue = queue});
    REQUIRE(opened.ok());
    fabric = std::move(*opened);
  }
  ~Member() {
    end();
    fabric.reset();
    (void)cudaStreamDestroy(queue);
  }
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  /// Makes the GPU current, as every call about it requires.
  void enter() const { (void)cudaSetDevice(gpu); }
  void begin(const LinkId& id, LinkSide side) { keep((enter(), fabric->begin(id, side))); }
  void begin(const LinkId& id, LinkMember member) {
    keep((enter(), fabric->begin_adding(id, member)));
  }
  void keep(Result<std::unique_ptr<Link>> begun) {
    REQUIRE(begun.ok());
    link = std::move(*begun);
  }
  void post(std::span<float> numbers, std::span<const std::size_t> counts) {
    std::vector<Piece> pieces;
    auto* at = reinterpret_cast<std::byte*>(numbers.data());
    for (const auto count : counts) {
      pieces.push_back({at, count * sizeof(float)});
      at += pieces.back().bytes;
    }
    enter();
    link->post(pieces);
  }
  void end() {
    std::vector<std::unique_ptr<Link>> links;
    if (link) links.push_back(std::move(link));
    fabric->end(std::move(links));
    const auto until = std::chrono::steady_clock::now() + longest;
    while (!fabric->ended() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    CHECK(fabric->ended());
  }

  const int gpu;
  cudaStream_t queue = nullptr;
  std::unique_ptr<Fabric> fabric;
  std::unique_ptr<Link> link;
};

using Members = std::vector<std::unique_ptr<Member>>;

Members make_members(int count) {
  Members members;
  for (int gpu = 0; gpu < count; ++gpu) members.push_back(std::make_unique<Member>(gpu));
  return members;
}

/// Polls until the condition holds for all members.
template <class Holds>
void look(const Members& members, Holds holds) {
  const auto until = std::chrono::steady_clock::now() + longest;
  for (bool all = false; !all;) {
    REQUIRE(std::chrono::steady_clock::now() < until);
    all = true;
    for (const auto& member : members) {
      member->enter();
      all &= holds(member->link->report());
    }
  }
}

/// Sums in several rounds. Piece k is summed at member k.
void add_up_once(int count, std::span<const std::size_t> counts) {
  const auto members = make_members(count);
  const auto id = members[0]->fabric->name_link();
  REQUIRE(id.ok());
  for (int k = 0; k < count; ++k)
    members[static_cast<std::size_t>(k)]->begin(*id, LinkMember{k, count});
  look(members, [](const auto& report) { return report.phase == Phase::ready; });
  for (std::uint64_t round = 1; round <= 3; ++round) {
    std::vector<std::vector<float>> numbers;
    for (std::size_t k = 0; k < members.size(); ++k) {
      auto& own = numbers.emplace_back();
      for (std::size_t piece = 0; piece < counts.size(); ++piece)
        own.insert(own.end(), counts[piece], static_cast<float>(round * 100 + piece * 10 + k));
    }
    for (std::size_t k = 0; k < members.size(); ++k) members[k]->post(numbers[k], counts);
    look(members, [&](const auto& report) { return report.ended == round; });
    std::size_t first = 0;
    for (std::size_t k = 0; k < members.size(); first += counts[k++]) {
      float sum = 0;
      for (std::size_t other = 0; other < members.size(); ++other)
        sum += static_cast<float>(round * 100 + k * 10 + other);
      const auto own = std::span(numbers[k]).subspan(first, counts[k]);
      CHECK(std::ranges::count(own, sum) == static_cast<std::ptrdiff_t>(own.size()));
    }
  }
}

/// Sums with fast and slow devices.
void add_up(int count, std::span<const std::size_t> counts) {
  for (std::uint32_t seed = 1; seed <= 10; ++seed) {
    cuda_on_cores::set_temper(
        {.seed = seed, .most_at_a_look = seed % 4 + 1, .fails_after = {}, .stops_after = {}});
    add_up_once(count, counts);
  }
  cuda_on_cores::set_temper({});
}

}  // namespace

TEST_CASE("each of three members gets the sum of its piece", "[nccl]") {
  add_up(3, std::vector<std::size_t>{1000, 70'000, 31});
}

TEST_CASE("a member whose piece is empty gets nothing but takes part", "[nccl]") {
  add_up(3, std::vector<std::size_t>{500, 0, 40'000});
  add_up(2, std::vector<std::size_t>{0, 500});
}

TEST_CASE("two members with one GPU are refused with NCCL's reason", "[nccl]") {
  Member one(0), twin(0);
  const auto id = one.fabric->name_link();
  REQUIRE(id.ok());
  one.begin(*id, LinkSide::sends);
  twin.begin(*id, LinkSide::receives);
  for (int i = 0; i < 20; ++i) (void)one.link->report(), (void)twin.link->report();
  CHECK(one.link->report().phase == Phase::broken);
  CHECK(one.link->why_broken() ==
        "NCCL: it is used as it must not be; its last warning: "
        "members 0 and 1 have one GPU, 0000:01:00.0");
}

TEST_CASE("a failure at the start is reported and leaves nothing behind", "[nccl]") {
  Member one(0);
  const auto id = one.fabric->name_link();
  REQUIRE(id.ok());
  cuda_on_cores::let_next_go_wrong();
  one.begin(*id, LinkSide::sends);
  CHECK(one.link->report().phase == Phase::broken);
  CHECK(one.link->why_broken() ==
        "NCCL: the system refused something; its last warning: the system has no sockets left");
  one.end();
  CHECK(cuda_on_cores::communicators_left() == 0);
}

TEST_CASE("numbers are transferred although both GPUs have earlier work pending", "[nccl]") {
  // The GPUs' own queues work only while somebody waits; the links' queues work at once.
  cuda_on_cores::set_temper({.seed = 1, .most_at_a_look = 0, .fails_after = {}, .stops_after = {}});
  const auto members = make_members(2);
  cuda_on_cores::set_temper({});
  const auto id = members[0]->fabric->name_link();
  REQUIRE(id.ok());
  members[0]->begin(*id, LinkSide::sends);
  members[1]->begin(*id, LinkSide::receives);
  look(members, [](const auto& report) { return report.phase == Phase::ready; });
  std::vector<float> from{1, 2, 3}, to(3), others(2);
  const float number = 7;
  for (std::size_t i = 0; i < 2; ++i)
    REQUIRE(cudaMemcpyAsync(&others[i], &number, sizeof number, cudaMemcpyDefault,
                            members[i]->queue) == cudaSuccess);
  const std::vector<std::size_t> counts{3};
  members[0]->post(from, counts);
  members[1]->post(to, counts);
  look(members, [](const auto& report) { return report.ended == 1; });
  CHECK((to == from));
  CHECK((others == std::vector<float>{0, 0}));
  for (const auto& member : members) REQUIRE(cudaStreamSynchronize(member->queue) == cudaSuccess);
  CHECK((others == std::vector<float>{7, 7}));
}

TEST_CASE("an aborted receive releases the device and leaves garbage", "[nccl]") {
  const auto members = make_members(2);
  const auto id = members[0]->fabric->name_link();
  REQUIRE(id.ok());
  members[0]->begin(*id, LinkSide::sends);
  members[1]->begin(*id, LinkSide::receives);
  look(members, [](const auto& report) { return report.phase == Phase::ready; });
  std::vector<std::size_t> counts{10};
  std::vector<float> sent(10, 1), first(10, 2), second(10, 3);
  members[0]->post(sent, counts);
  members[1]->post(first, counts);
  look(members, [](const auto& report) { return report.ended == 1; });
  CHECK((first == sent));

  members[1]->post(second, counts);
  auto& receives = *members[1];
  receives.enter();
  for (int i = 0; i < 20; ++i) (void)receives.link->report();
  REQUIRE(receives.link->report().issued == 2);
  CHECK(receives.link->report().ended == 1);
  receives.link->join();
  float behind = 0;
  const float number = 7;
  REQUIRE(cudaMemcpyAsync(&behind, &number, sizeof number, cudaMemcpyDefault, receives.queue) ==
          cudaSuccess);
  receives.end();
  REQUIRE(cudaStreamSynchronize(receives.queue) == cudaSuccess);
  CHECK(behind == number);
  std::vector<float> garbage(10);
  std::memset(garbage.data(), cuda_on_cores::nccl_garbage, garbage.size() * sizeof(float));
  CHECK(std::memcmp(second.data(), garbage.data(), garbage.size() * sizeof(float)) == 0);

  // The other end discovers it by polling.
  members[0]->enter();
  CHECK(members[0]->link->report().phase == Phase::broken);
  CHECK(members[0]->link->why_broken().starts_with("NCCL: another member is gone"));
}

TEST_CASE("links that have ended leave nothing behind", "[nccl]") {
  const auto queues = cuda_on_cores::queues_left();
  const auto events = cuda_on_cores::events_left();
  add_up(3, std::vector<std::size_t>{10, 20, 30});
  CHECK(cuda_on_cores::communicators_left() == 0);
  CHECK(cuda_on_cores::queues_left() == queues);
  CHECK(cuda_on_cores::events_left() == events);
}
