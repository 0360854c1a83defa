#include "schedules/generators.h"

#include "catch.h"
#include "golden.h"
#include "schedules/registry.h"
#include "schedules/text.h"

using namespace troupe;
using namespace troupe::schedules;

TEST_CASE("every golden schedule is generated to the letter", "[schedules]") {
  const auto all = golden_schedules();
  REQUIRE(all.size() == 16);
  for (const Golden& golden : all) {
    const auto wanted = parse_schedule(golden.text);
    REQUIRE(wanted.ok());
    const auto made =
        generate(wanted->name, {.stages = wanted->stages, .micro_batches = wanted->micro_batches});
    REQUIRE(made.ok());
    CHECK(to_text(*made) == golden.text);
  }
}
