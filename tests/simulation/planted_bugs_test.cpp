#include <iostream>

#include "catch.h"
#include "simulation/scenario.h"

using namespace troupe::simulation;

TEST_CASE("the simulation finds every planted bug", "[simulation]") {
  constexpr std::uint64_t most_seeds = 5'000;
  for (int number = 1; number < bugs; ++number) {
    const auto bug = static_cast<Bug>(number);
    std::uint64_t seed = 0;
    std::string violation;
    while (violation.empty() && seed < most_seeds) violation = play({++seed, bug}).violation;
    INFO(to_string(bug));
    CHECK(violation != "");
    std::cout << to_string(bug) << ": found by seed " << seed << ": " << violation << "\n";
  }
}
