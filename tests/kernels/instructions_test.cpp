#include "kernels/instructions.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "catch.h"
#include "kernels/precision.h"
#include "tests/kernels/every_target.h"

namespace troupe::kernels {
namespace {

/// Lets kernels use all instructions again at the end of a test.
struct AllAgain {
  ~AllAgain() {
    unsetenv(instructions_variable);
    use_instructions(instruction_sets().back());
  }
};

TEST_CASE("kernels use the set of instructions that a program chooses", "[kernels]") {
  const AllAgain all_again;
  const auto& sets = instruction_sets();
  REQUIRE(!sets.empty());
  REQUIRE(std::ranges::is_sorted(sets));
  for (const auto set : sets) {
    CAPTURE(to_string(set));
    use_instructions(set);
    CHECK(instructions_in_use() == set);
    const auto target = test::current_target();
    if (set == Instructions::plain) CHECK((target == "EMU128" || target == "SCALAR"));
    if (set == Instructions::avx2) CHECK(target == "AVX2");
    if (set == Instructions::avx512) CHECK(target == "AVX3");
    if (set == Instructions::neon) CHECK(target.starts_with("NEON"));
    if (set < Instructions::avx512) CHECK(!has_bf16_products());
    if (set < Instructions::amx) CHECK(fastest_bf16() == Precision::bf16_pairs);
  }
}

TEST_CASE("TROUPE_ISA limits the instructions of a program", "[kernels]") {
  const AllAgain all_again;
  unsetenv(instructions_variable);
  REQUIRE(obey_instructions_variable());
  CHECK(instructions_in_use() == instruction_sets().back());
  const auto smallest = instruction_sets().front();
  setenv(instructions_variable, std::string(to_string(smallest)).c_str(), 1);
  REQUIRE(obey_instructions_variable());
  CHECK(instructions_in_use() == smallest);
}

TEST_CASE("an error says which instructions the processor has", "[kernels]") {
  const AllAgain all_again;
  std::string present;
  for (const auto set : instruction_sets())
    present += (present.empty() ? "" : ", ") + std::string(to_string(set));

  setenv(instructions_variable, "sse9", 1);
  const auto unknown = obey_instructions_variable();
  REQUIRE(!unknown);
  CHECK(unknown.error().text ==
        "TROUPE_ISA = \"sse9\" names no set of instructions; use one that this processor has: " +
            present);

  // No processor has both.
  const bool is_arm =
      std::ranges::find(instruction_sets(), Instructions::neon) != instruction_sets().end();
  const std::string other = is_arm ? "avx2" : "neon";
  const auto absent = find_instructions(other);
  REQUIRE(!absent);
  CHECK(absent.error().text == "\"" + other +
                                   "\": this processor lacks them; use one "
                                   "that this processor has: " +
                                   present);
}

}  // namespace
}  // namespace troupe::kernels
