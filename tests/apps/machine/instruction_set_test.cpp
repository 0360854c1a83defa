#include <cstdlib>

#include "apps/program.h"
#include "catch.h"

using namespace troupe;
using namespace troupe::tests;

namespace {

const std::string small_run = R"(name = "x"
[model]
kind = "gpt2"
vocab = 32
context = 8
width = 16
heads = 2
layers = 1
[data]
train = "made:markov?states=32"
[batch]
global = 4
[train]
steps = 2
)";

// A set that every processor of its kind has, without instructions for bf16.
#if defined(__aarch64__)
const char* const without_bf16 = "neon";
#else
const char* const without_bf16 = "plain";
#endif

/// Runs the program with TROUPE_ISA set to `instructions`.
Ended with_instructions(const char* instructions, const Workplace& here,
                        const std::vector<std::string>& arguments) {
  Launch launch;
  launch.arguments = arguments;
  launch.before_start = [instructions] { setenv("TROUPE_ISA", instructions, 1); };
  return troupe::tests::troupe(here, launch);
}

}  // namespace

TEST_CASE("auto chooses no bf16 on a processor without instructions for it", "[apps]") {
  const Workplace here;
  here.write("run.toml", small_run);
  const auto ended = with_instructions(without_bf16, here, {"train", "run.toml"});
  CAPTURE(ended.err);
  REQUIRE(ended.code == 0);
  CHECK(mentions(ended.err, "parameters in fp32"));
  CHECK(!mentions(ended.err, "products in"));
  CHECK(!mentions(ended.err, "warning"));
}

TEST_CASE("bf16 by name warns with its slowness on a processor without instructions for it",
          "[apps]") {
  const Workplace here;
  here.write("run.toml", small_run);
  for (const std::string name : {"bf16", "bf16-pairs", "bf16-blocks"}) {
    CAPTURE(name);
    const auto ended = with_instructions(without_bf16, here,
                                         {"train", "run.toml", "--output", "json", "--set",
                                          "precision.compute=" + name, "--set", "name=" + name});
    CAPTURE(ended.err);
    REQUIRE(ended.code == 0);
    const auto warnings = ended.events("warn");
    REQUIRE(warnings.size() == 1);
    const std::string text = *warnings[0].find("text")->text();
    CAPTURE(text);
    CHECK(mentions(text, name == "bf16" ? "bf16-pairs" : name));
    CHECK(mentions(text,
                   "no instructions for it (it computes with " + std::string(without_bf16) + ")"));
    CHECK(mentions(text, " times as long as in fp32, measured here; set it to \"auto\""));
  }
}

TEST_CASE("TROUPE_ISA must name instructions that the processor has", "[apps]") {
  const Workplace here;
  const auto ended = with_instructions("mmx", here, {"version"});
  CHECK(ended.code == 3);
  CHECK(mentions(ended.err,
                 "error: TROUPE_ISA = \"mmx\" names no set of instructions; use one that this "
                 "processor has: " +
                     std::string(without_bf16)));
}
