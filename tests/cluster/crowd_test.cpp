// A head with many nodes. The tests count; `./dev bench head` measures times.

#include "bench/crowd.h"

#include <signal.h>

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "catch.h"
#include "cluster/cluster.h"
#include "core/json.h"
#include "sanitized.h"

using namespace troupe;
using namespace troupe::tests;
using namespace std::chrono_literals;

namespace {

using Clock = std::chrono::steady_clock;

constexpr int count = 256;

std::set<std::string> names_of(const Workplace& here, const std::string& head) {
  std::set<std::string> found;
  const Ended status = tests::troupe(here, {"status", "--head", head, "--output", "json"});
  REQUIRE(status.code == 0);
  const auto answer = parse_json(status.out);
  REQUIRE(answer);
  for (const auto& node : *answer->find("nodes")->list()) found.insert(*node.find("name")->text());
  return found;
}

/// Asks for the names until there are so many.
std::set<std::string> names_once(const Workplace& here, const std::string& head, std::size_t many) {
  const auto end = Clock::now() + usual_patience;
  auto names = names_of(here, head);
  while (names.size() != many && Clock::now() < end) names = names_of(here, head);
  return names;
}

std::unique_ptr<bench::Crowd> crowd_at(const std::string& head) {
  auto crowd = bench::Crowd::start({.endpoint = head, .nodes = count});
  if (!crowd) FAIL(crowd.error().text);
  if (auto joined = (*crowd)->wait_until_welcome(usual_patience); !joined)
    FAIL(joined.error().text);
  return std::move(*crowd);
}

int times_in(const std::string& text, const std::string& part) {
  int times = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++times;
  return times;
}

}  // namespace

TEST_CASE("256 nodes join a head at once, cost little memory, and leave it", "[cluster]") {
  constexpr long most_bytes_each = 96 << 10;
  const Workplace here;
  Process head(here, head_words());
  REQUIRE(head.says("troupe submit"));
  const auto address = head_of(here);
  const long before = resident_bytes(head.id());
  {
    const auto crowd = crowd_at(address);
    CHECK(names_of(here, address).size() == count);
    // A sanitizer needs memory of its own.
    if (!is_sanitized) CHECK((resident_bytes(head.id()) - before) / count < most_bytes_each);
    // The head turned nobody away: each node needed one connection and one message.
    CHECK(crowd->counts().connected == count);
    CHECK(crowd->counts().joins == count);
  }
  CHECK(names_once(here, address, 0).empty());
  head.send(SIGTERM);
  CHECK(head.wait() == 0);
}

TEST_CASE("a head loses the nodes of a crowd that vanish, and no others", "[cluster]") {
  constexpr int frozen = 32, killed = 32;
  const Workplace here;
  Process head(here, head_words());
  REQUIRE(head.says("troupe submit"));
  const auto address = head_of(here);
  const auto crowd = crowd_at(address);
  crowd->freeze(frozen);
  crowd->kill(killed);
  const auto left = names_once(here, address, count - frozen - killed);
  CHECK(left.size() == count - frozen - killed);
  // The crowd takes its first nodes away.
  CHECK_FALSE(left.contains("crowd-" + std::to_string(frozen + killed - 1)));
  CHECK(left.contains("crowd-" + std::to_string(frozen + killed)));
  const auto most_late = crowd->counts().most_late;
  head.send(SIGTERM);
  CHECK(head.wait() == 0);
  if (most_late > 200ms) {
    WARN("skipped: this machine is too busy to send heartbeats in time");
    return;
  }
  CHECK(times_in(head.said(), ": no heartbeat for ") == frozen);
  CHECK(times_in(head.said(), ": its connection was closed") == killed);
  CHECK(times_in(head.said(), " is lost: ") == frozen + killed);
}

TEST_CASE("all nodes of a crowd join a restarted head, with two messages each", "[cluster]") {
  const Workplace here;
  auto head = std::make_unique<Process>(here, head_words());
  REQUIRE(head->says("troupe submit"));
  const auto address = head_of(here);
  const auto crowd = crowd_at(address);
  head->send(SIGKILL);
  REQUIRE(head->wait() == 128 + SIGKILL);
  while (crowd->counts().welcome > 0) {
  }
  const auto joins = crowd->counts().joins;
  head = std::make_unique<Process>(here, head_words());
  REQUIRE(head->says("troupe submit"));
  REQUIRE(head_of(here) == address);
  if (auto back = crowd->wait_until_welcome(usual_patience); !back) FAIL(back.error().text);
  CHECK(names_of(here, address).size() == count);
  // The first is for the head that was, the second as a new node. A head with a sanitizer is slow,
  // and some nodes give up their first connections.
  if (!is_sanitized) CHECK(crowd->counts().joins == joins + 2 * count);
  head->send(SIGTERM);
  CHECK(head->wait() == 0);
}
