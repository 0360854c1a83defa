// A run beside what its plan says that it takes.

#include <algorithm>
#include <cstdint>
#include <string>

#include "core/json.h"
#include "played_gpus/runs.h"

using namespace troupe;
using namespace troupe::tests;

namespace {

/// Wide enough that a GPU's granule (64 KiB here) is little beside it.
const std::vector<Kind> wide = {
    {"kind = \"mlp\"\ndims = [64, 256, 256, 8]", "made:gaussians?dims=64&classes=8"},
    {"kind = \"gpt2\"\nvocab = 64\ncontext = 32\nwidth = 64\nheads = 2\nlayers = 4",
     "made:markov?states=64"},
    {"kind = \"vit\"\nimage = 16\npatch = 4\nchannels = 1\nwidth = 64\nheads = 2\nlayers = 3\n"
     "classes = 10",
     "made:glyphs?size=16"}};

/// What the plan of `run.toml` has for its one device, in whole granules.
std::int64_t planned(const Workplace& here, const Settings& settings) {
  const Ended ended =
      troupe::tests::troupe(here, with({"plan", "run.toml", "--output", "json"}, settings));
  REQUIRE(ended.code == 0);
  const auto plan = parse_json(ended.out.substr(0, ended.out.find('\n')));
  REQUIRE(plan);
  const auto* seats = plan->find("seats");
  REQUIRE((seats && seats->list() && seats->list()->size() == 1));
  const auto* total = seats->list()->front().find("bytes")->find("total");
  REQUIRE((total && total->integer()));
  constexpr std::int64_t granule = 64 << 10;
  return (*total->integer() + granule - 1) / granule * granule;
}

}  // namespace

TEST_CASE("a run in fp32 fits into a GPU that has what the plan says", "[apps]") {
  for (const auto& kind : wide) {
    const Workplace here;
    here.write("run.toml", configuration(kind));
    CAPTURE(kind.model);
    const auto wanted = train(here, {});
    // With short passes, which take memory of their own as long as there is some, and without.
    for (const std::string rows : {"4096", "0"}) {
      const auto settings = on_gpu + Settings{"train.graph_rows=" + rows};
      const Variable memory("CUDA_ON_CORES_MEMORY", std::to_string(planned(here, settings)));
      CHECK(train(here, settings) == wanted);
    }
  }
}

TEST_CASE("a run that a GPU has no memory for is refused by its plan", "[apps]") {
  const Workplace here;
  here.write("run.toml", configuration(wide.front()));
  const Variable memory("CUDA_ON_CORES_MEMORY", std::to_string(planned(here, on_gpu) / 2));
  const Ended ended = troupe::tests::troupe(here, with({"train", "run.toml", "-q"}, on_gpu));
  CAPTURE(ended.err);
  CHECK(ended.code == 3);
  CHECK(ended.err.find("does not fit: here:gpu0 needs") != std::string::npos);
}
