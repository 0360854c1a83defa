// A head with many nodes.

#include "bench/crowd.h"

#include <signal.h>

#include <chrono>
#include <set>
#include <string>

#include "catch.h"
#include "cluster/cluster.h"
#include "core/json.h"

using namespace troupe;
using namespace troupe::tests;
using namespace std::chrono_literals;

namespace {

using Clock = std::chrono::steady_clock;

Ended status_of(const Workplace& here, const std::string& head) {
  return tests::troupe(here, {"status", "--head", head, "--output", "json"});
}

std::set<std::string> names_of(const Ended& status) {
  std::set<std::string> found;
  REQUIRE(status.code == 0);
  const auto answer = parse_json(status.out);
  REQUIRE(answer);
  for (const auto& node : *answer->find("nodes")->list()) found.insert(*node.find("name")->text());
  return found;
}

}  // namespace

TEST_CASE("two hundred nodes join a head at once, cost little memory, and leave it", "[cluster]") {
  constexpr int count = 200;
  constexpr long most_bytes_each = 256 << 10;
  const Workplace here;
  Process head(here, head_words());
  REQUIRE(head.says("troupe submit"));
  const auto address = head_of(here);
  const long before = resident_bytes(head.id());
  {
    const auto crowd = bench::Crowd::gather(address, count, 60s);
    if (!crowd) FAIL(crowd.error().text);
    // `./dev bench head` measures how fast they join.
    CHECK(names_of(status_of(here, address)).size() == count);
    CHECK((resident_bytes(head.id()) - before) / count < most_bytes_each);
  }
  const auto end = Clock::now() + 30s;
  while (!names_of(status_of(here, address)).empty() && Clock::now() < end) {
  }
  CHECK(names_of(status_of(here, address)).empty());
  head.send(SIGTERM);
  CHECK(head.wait() == 0);
}
