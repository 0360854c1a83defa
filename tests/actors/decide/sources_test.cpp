#include "actors/decide/sources.h"

#include <vector>

#include "catch.h"

using namespace troupe;
using namespace troupe::actors;

namespace {

using AllKept = std::vector<std::vector<KeptStep>>;
using From = StateSource::From;

std::vector<StateSource> in_memory(const AllKept& kept, const std::vector<int>& owners,
                                   std::int64_t committed) {
  return sources_of({kept, owners, {}, committed, true});
}

}  // namespace

TEST_CASE("a step in memory is a source if every state of it is there", "[actors]") {
  const std::vector<int> owners{0, 1, 2};
  const AllKept all{{{4, {0, 2}}, {6, {0, 2}}}, {{4, {1, 0}}, {6, {1, 0}}}, {{4, {2, 1}}}};
  const StateSource six{From::memory, 6, {0, 1, 0}}, four{From::memory, 4, {0, 1, 2}};
  CHECK(in_memory(all, owners, 9) == std::vector{six, four});
  // A step that is not committed does not count.
  CHECK(in_memory(all, owners, 5) == std::vector{four});
  CHECK(in_memory(all, owners, 3).empty());
  // A state comes from its own process, or else from the next process that has it.
  CHECK(in_memory(all, {1, 2, 1}, 4) == std::vector{StateSource{From::memory, 4, {1, 2, 2}}});
  CHECK(in_memory(all, {2, 0, 1}, 6).front() == StateSource{From::memory, 6, {0, 1, 0}});
  // No step has the third state.
  CHECK(in_memory({{{4, {0, 1}}}, {{4, {1, 0}}, {6, {0, 1, 2}}}}, owners, 5).empty());
  CHECK(in_memory({{}, {}}, {0, 1}, 5).empty());
}

TEST_CASE("the highest step is the best source, and memory is better than a disk", "[actors]") {
  const AllKept kept{{{20, {0}}, {30, {0}}}};
  const std::vector<int> owners{0};
  const std::vector<std::int64_t> saved{10, 20, 40};
  const std::vector<StateSource> expected{{From::checkpoint, 40, {}},
                                          {From::memory, 30, {0}},
                                          {From::memory, 20, {0}},
                                          {From::checkpoint, 20, {}},
                                          {From::checkpoint, 10, {}}};
  CHECK(sources_of({kept, owners, saved, 50, true}) == expected);
  // The seed is a source only of a run that was never saved.
  CHECK(sources_of({{}, owners, {}, 0, true}).empty());
  CHECK(sources_of({kept, owners, {}, 20, false}) ==
        std::vector<StateSource>{{From::memory, 20, {0}}, {From::seed, 0, {}}});
}
