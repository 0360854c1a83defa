#include "transport/links/nccl_fabric.h"

#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/catch.h"

using namespace troupe;
using namespace troupe::transport;

TEST_CASE("NCCL's library is loaded on demand and reports its version", "[nccl]") {
  const auto kind = kind_of_nccl();
  if (!kind) {
    CHECK(kind.error().text.starts_with("NCCL: "));
    WARN("skipped: " << kind.error().text);
    return;
  }
  CHECK(kind->starts_with("nccl 2."));
}

TEST_CASE("without a GPU the error says that this is why there are no links", "[nccl]") {
  const auto fabric = open_nccl_fabric({});
  if (fabric || !kind_of_nccl()) return;
  CHECK(fabric.error().text.starts_with("GPU 0: CUDA: "));
}

TEST_CASE("links that need more queues than CUDA has connections are reported once", "[nccl]") {
  std::vector<std::string> remarks;
  auto fabric = open_nccl_fabric(
      {.free_queues = 5, .remark = [&](const std::string& text) { remarks.push_back(text); }});
  if (!fabric) {
    WARN("skipped: " << fabric.error().text);
    return;
  }
  std::vector<std::unique_ptr<Link>> links;
  const auto begin = [&] {
    const auto id = (*fabric)->name_link();
    REQUIRE(id.ok());
    auto link = (*fabric)->begin(*id, LinkSide::sends);
    REQUIRE(link.ok());
    links.push_back(std::move(*link));
  };
  begin();
  CHECK(remarks.empty());
  begin();
  begin();
  CHECK(remarks == std::vector<std::string>{
                       "GPU 0 has 2 or more links by NCCL with 3 queues each, but CUDA has "
                       "connections for 5 of these queues; transfers may wait for each other"});
  (*fabric)->poison().spoil(1);
  (*fabric)->end(std::move(links));
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!(*fabric)->ended() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  CHECK((*fabric)->ended());
}

TEST_CASE("an end that never meets its peer is given up", "[nccl]") {
  auto fabric = open_nccl_fabric({});
  if (!fabric) {
    WARN("skipped: " << fabric.error().text);
    return;
  }
  const auto id = (*fabric)->name_link();
  REQUIRE(id.ok());
  CHECK((*fabric)->adds());
  const bool adds = GENERATE(false, true);
  auto link = adds ? (*fabric)->begin_adding(*id, {0, 3}) : (*fabric)->begin(*id, LinkSide::sends);
  REQUIRE(link.ok());
  CHECK((*link)->report().phase == LinkReport::Phase::forming);
  std::vector<std::unique_ptr<Link>> links;
  links.push_back(std::move(*link));
  (*fabric)->poison().spoil(1);
  (*fabric)->end(std::move(links));
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!(*fabric)->ended() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  CHECK((*fabric)->ended());
}
