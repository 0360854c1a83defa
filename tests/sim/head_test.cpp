// A head in a simulated process.

#include <string>

#include "catch.h"
#include "tests/sim/cluster.h"

using namespace troupe;
using namespace troupe::simulation;
using namespace std::chrono_literals;

namespace {

/// Two lives of a head, each of which is asked. Returns the hash of all that happened.
std::uint64_t two_lives(const Scheduler::Options& options) {
  SimulatedCluster cluster(options);
  auto& machine = cluster.add_machine("alpha");
  auto& first = cluster.start_head(machine);
  REQUIRE(cluster.run_until([&] { return first.is_ready || first.process->ending(); }));
  INFO((first.process->ending() ? first.process->ending()->last_words : ""));
  REQUIRE(first.is_ready);
  const auto hello = cluster.ask(machine, "hello");
  REQUIRE(hello);
  CHECK(*hello->find("rights")->text() == "operator");
  const auto status = cluster.ask(machine, "status");
  REQUIRE(status);
  CHECK(status->find("nodes")->list()->empty());
  CHECK(cluster.scheduler().is_alive(first.process->id()));
  CHECK(machine.disk.files().exists(".troupe/journal").ok());

  cluster.end(first);
  REQUIRE(cluster.run_until([&] { return !first.process->is_alive(); }));
  CHECK(first.process->ending()->how == Ending::How::ended);
  CHECK(first.process->ending()->code == 0);
  CHECK(cluster.wires().open_ends() <= 1);  // The client dials again.

  auto& second = cluster.start_head(machine);
  REQUIRE(cluster.run_until([&] { return second.is_ready; }));
  CHECK(second.term > first.term);
  CHECK(second.endpoint == first.endpoint);
  CHECK(cluster.ask(machine, "status"));
  second.process->kill();
  CHECK(cluster.wires().open_ends() <= 1);

  auto& third = cluster.start_head(machine);
  REQUIRE(cluster.run_until([&] { return third.is_ready; }));
  CHECK(third.term > second.term);
  return cluster.scheduler().trace_hash();
}

}  // namespace

TEST_CASE("a simulated head answers, ends, and comes again with a higher term", "[sim]") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    const auto manner = static_cast<Scheduler::Manner>(seed % 3);
    const auto hash = two_lives({.seed = seed, .manner = manner});
    CHECK(two_lives({.seed = seed, .manner = manner}) == hash);
  }
}

TEST_CASE("a node whose head cannot answer joins once more", "[sim]") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    SimulatedCluster cluster({.seed = seed, .manner = Scheduler::manner_of(seed)});
    auto& machine = cluster.add_machine("alpha");
    auto& other = cluster.add_machine("beta");
    auto* head = &cluster.start_head(machine);
    REQUIRE(cluster.run_until([&] { return head->is_ready; }));
    cluster.wires().fill_queues(machine.id, 2s);
    auto& node = cluster.start_node(other, machine);
    CHECK_FALSE(cluster.run_until([&] { return node.has_said("joined"); }, 1s));
    const bool has_joined = cluster.run_until([&] { return node.has_said("joined"); });
    for (const auto& line : node.said) UNSCOPED_INFO(line);
    REQUIRE(has_joined);
    // The next head does not know the node, and tells it so.
    head->process->kill();
    head = &cluster.start_head(machine);
    REQUIRE(cluster.run_until([&] { return head->is_ready; }));
    cluster.wires().fill_queues(machine.id, 2s);
    REQUIRE(cluster.run_until([&] { return node.has_said("rejoining"); }));
    std::size_t nodes = 0;
    for (int i = 0; i < 50 && nodes == 0; ++i) {
      (void)cluster.run_until([] { return false; }, 100ms);
      const auto status = cluster.ask(machine, "status");
      REQUIRE(status);
      nodes = status->find("nodes")->list()->size();
    }
    CHECK(nodes == 1);
  }
}
