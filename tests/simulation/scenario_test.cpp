#include "simulation/scenario.h"

#include <cstdlib>
#include <iostream>
#include <set>

#include "catch.h"

using namespace troupe::simulation;
namespace recon = troupe::actors::reconciler;

namespace {

/// Rows that no seed reaches. The simulated network cuts nodes off but reports no pairs, its losses
/// are too few for the run to give up, and it names no keepers of states. reconciler_nodes_test and
/// reconciler_epochs_test cover these rows.
const std::set<recon::Row> are_for_other_tests{recon::Row::recover_hopeless, recon::Row::pair_lost,
                                               recon::Row::suspend_tries,
                                               recon::Row::recover_gathers};

/// Reads the number of seeds (TROUPE_SEEDS) or the first seed (TROUPE_FIRST_SEED).
std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

}  // namespace

TEST_CASE("equal seeds give equal stories", "[simulation]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto once = play({seed});
    const auto again = play({seed});
    INFO("seed " << seed);
    CHECK(once.trace == again.trace);
    CHECK(once.events == again.events);
    CHECK(once.rows == again.rows);
  }
  CHECK(play({1}).trace != play({2}).trace);
}

TEST_CASE("seeds that once found a bug find no violation", "[simulation]") {
  for (const std::uint64_t seed : {5246, 5599, 9449, 12729, 27433, 35499, 66928, 74730, 98839}) {
    INFO("seed " << seed);
    CHECK(play({seed}).violation == "");
  }
}

TEST_CASE("a run with any faults ends with the bits of an undisturbed run", "[simulation]") {
  const auto first = from_environment("TROUPE_FIRST_SEED", 1);
  const auto count = from_environment("TROUPE_SEEDS", 2'000);
  std::map<recon::Row, std::int64_t> rows;
  std::int64_t events = 0, epochs = 0, again = 0;
  for (auto seed = first; seed < first + count; ++seed) {
    const auto story = play({seed});
    INFO("seed " << seed);
    REQUIRE(story.violation == "");
    for (const auto& [row, times] : story.rows) rows[row] += times;
    events += static_cast<std::int64_t>(story.events);
    epochs += story.epochs;
    again += story.steps_again;
  }
  std::cout << count << " seeds, " << events << " events, " << epochs << " epochs, " << again
            << " steps done again; how often each row of the reconciler's table applied:\n";
  for (const auto row : recon::all_rows())
    std::cout << "  " << to_string(row) << " " << rows[row] << "\n";
  for (const auto row : recon::all_rows()) {
    INFO(to_string(row));
    if (count >= 2'000 && !are_for_other_tests.contains(row)) CHECK(rows[row] >= 100);
  }
}
