// The memory of a run compared with its plan.

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "core/json.h"
#include "played_gpus/runs.h"

using namespace troupe;
using namespace troupe::tests;

namespace {

/// Models wide enough that a GPU's allocation granule is small beside them.
const std::vector<Kind> wide = {
    {"kind = \"mlp\"\ndims = [64, 256, 256, 8]", "made:gaussians?dims=64&classes=8"},
    {"kind = \"gpt2\"\nvocab = 64\ncontext = 32\nwidth = 64\nheads = 2\nlayers = 2",
     "made:markov?states=64"},
    {"kind = \"llama\"\nvocab = 64\ncontext = 32\nwidth = 64\nheads = 4\nkv_heads = 2\nlayers = 2\n"
     "ffn = 128",
     "made:markov?states=64"},
    {"kind = \"vit\"\nimage = 16\npatch = 4\nchannels = 1\nwidth = 64\nheads = 2\nlayers = 2\n"
     "classes = 10",
     "made:glyphs?size=16"},
    {"kind = \"resnet\"\nchannels = 1\nwidths = [16, 32]\nblocks = [1, 2]\nclasses = 10",
     "made:glyphs?size=16"}};

constexpr std::int64_t granule = 64 << 10;
// A plan does not count free ranges that are too short to be used. In these small models there are
// a few of the size of a tensor.
constexpr std::int64_t holes = 4 * granule;
// The size that a device maps at once, if it has that much.
constexpr std::int64_t piece = 32 * granule;

std::int64_t rounded_up(std::int64_t bytes, std::int64_t to) { return (bytes + to - 1) / to * to; }

/// Returns the memory that a GPU needs so that each of its devices has the plan's maximum for
/// `run.toml`, in multiples of `in`.
std::int64_t planned(const Workplace& here, const Settings& settings, std::int64_t in = granule) {
  const Ended ended =
      troupe::tests::troupe(here, with({"plan", "run.toml", "--output", "json"}, settings));
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  const auto plan = parse_json(ended.out.substr(0, ended.out.find('\n')));
  REQUIRE(plan);
  const auto* seats = plan->find("seats");
  REQUIRE((seats && seats->list()));
  std::map<std::int64_t, std::int64_t> held;  // Bytes by device.
  for (const auto& seat : *seats->list()) {
    const auto* device = seat.find("position");
    const auto* total = seat.find("bytes")->find("total");
    REQUIRE((device && device->integer() && total && total->integer()));
    held[*device->integer()] += *total->integer();
  }
  std::int64_t most = 0;
  for (const auto& [device, bytes] : held) most = std::max(most, rounded_up(bytes, in));
  return most * static_cast<std::int64_t>(held.size());
}

}  // namespace

TEST_CASE("a run fits into a GPU with the memory that its plan states", "[apps]") {
  for (const auto& kind : wide) {
    const Workplace here;
    here.write("run.toml", configuration(kind));
    for (const std::string precision : {"fp32", "bf16"}) {
      CAPTURE(kind.model, precision);
      const auto settings =
          on_gpu + Settings{"precision.compute=" + precision, "train.steps=2", "batch.global=4"};
      const auto wanted = train(here, settings);
      const Variable memory("CUDA_ON_CORES_MEMORY",
                            std::to_string(planned(here, settings) + holes));
      CHECK(train(here, settings) == wanted);
    }
  }
}

TEST_CASE("several devices fit into a GPU with every schedule, each with its planned memory",
          "[apps]") {
  const Workplace here;
  here.write("run.toml", configuration({"kind = \"gpt2\"\nvocab = 64\ncontext = 32\nwidth = 64\n"
                                        "heads = 2\nlayers = 4",
                                        "made:markov?states=64"}));
  const auto on_tensor_cores =
      on_gpu + Settings{"precision.compute=bf16", "train.steps=2", "batch.global=4"};
  const auto wanted = train(here, on_tensor_cores);
  for (const auto& plan : std::vector<Settings>{
           {"pipeline.stages=2"},
           {"pipeline.stages=2", "pipeline.recompute=true", "pipeline.schedule=gpipe"},
           {"pipeline.stages=4", "pipeline.chunks=2", "pipeline.schedule=zb-v"}}) {
    CAPTURE(plan);
    const auto settings = on_tensor_cores + plan;
    const Variable memory("CUDA_ON_CORES_MEMORY", std::to_string(planned(here, settings, piece)));
    CHECK(train(here, settings) == wanted);
  }
}

TEST_CASE("a run that needs more memory than its GPU has is refused by its plan", "[apps]") {
  const Workplace here;
  here.write("run.toml", configuration(wide.front()));
  const Variable memory("CUDA_ON_CORES_MEMORY", std::to_string(planned(here, on_gpu) / 2));
  const Ended ended = troupe::tests::troupe(here, with({"train", "run.toml", "-q"}, on_gpu));
  CAPTURE(ended.err);
  CHECK(ended.code == 3);
  CHECK(ended.err.find("does not fit: here:gpu0 needs") != std::string::npos);
}
