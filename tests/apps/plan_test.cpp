// troupe plan: its figures match what happens, and its errors say what is impossible.

#include <algorithm>
#include <filesystem>

#include "apps/program.h"
#include "catch.h"
#include "core/json.h"
#include "own_unet.h"

using namespace troupe;
using namespace troupe::tests;

namespace {

namespace fs = std::filesystem;

const fs::path configurations = fs::path(TROUPE_TESTS).parent_path() / "config";

Ended plan(const Workplace& here, std::vector<std::string> more) {
  more.insert(more.begin(), "plan");
  return troupe::tests::troupe(here, more);
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::int64_t bytes_of(const Value& seat) {
  std::int64_t total = 0;
  for (const char* what : {"weights", "gradients", "optimizer", "activations", "buffers"})
    total += *seat.find("bytes")->find(what)->integer();
  return total;
}

/// Writes a GPT of 4 layers that takes about 3 MB per layer.
std::string small_gpt(const Workplace& here) {
  return here.write("gpt.toml", R"(
name = "g"
[model]
kind = "gpt2"
vocab = 64
context = 32
width = 128
heads = 2
layers = 4
[data]
train = "made:markov?states=64"
[batch]
global = 4
micro = 1
[precision]
compute = "fp32"
[train]
steps = 1
)");
}

}  // namespace

TEST_CASE("a plan for the GPUs of this machine lists them, or says that there are none", "[apps]") {
  const Workplace here;
  const auto config = small_gpt(here);
  const Ended found = plan(here, {config, "--set", "train.device=cuda"});
  INFO(found.err << found.out);
  if (found.code == 0) {
    CHECK(has(found.out, "here:gpu0"));
    return;
  }
  CHECK(found.code == 3);
  CHECK(has(found.err, "train.device: wanted cuda, found no GPU: "));
  CHECK(has(found.err, "set train.device = \"cpu\", or name machines that have some: --cluster"));
}

TEST_CASE("a plan's bytes equal those that training in one process holds", "[apps]") {
  const auto [config, more] = GENERATE(table<std::string, std::vector<std::string>>({
      {"gpt-tiny.toml", {}},
      {"gpt-tiny.toml", {"--set", "precision.compute=fp32"}},
      {"gpt-tiny.toml", {"--set", "pipeline.recompute=true"}},
      {"gpt-tiny.toml", {"--set", "parallel.groups=1"}},
      {"gpt-small.toml", {"--set", "batch.global=8", "--set", "model.layers=2"}},
      {"llama-tiny.toml", {}},
      {"vit-tiny.toml", {}},
      {"mlp.toml", {}},
      {"resnet-tiny.toml", {}},
  }));
  CAPTURE(config, more);
  const Workplace here;
  std::vector<std::string> common{(configurations / config).string(), "--output", "json", "--set",
                                  "pipeline.stages=1", "--set", "pipeline.chunks=1", "--set",
                                  "optimizer.schedule.warmup_steps=0",
                                  // One process runs micro-batches one after another.
                                  "--set", "pipeline.schedule=1f1b"};
  common.insert(common.end(), more.begin(), more.end());

  const Ended planned = plan(here, common);
  INFO(planned.err);
  REQUIRE(planned.code == 0);
  const auto figures = parse_json(planned.out);
  REQUIRE(figures);
  const auto expected = static_cast<double>(bytes_of(figures->find("seats")->list()->front()));

  auto training = common;
  training.insert(training.begin(), "train");
  training.insert(training.end(), {"--set", "train.steps=2"});
  const Ended trained = troupe::tests::troupe(here, training);
  INFO(trained.err);
  REQUIRE(trained.code == 0);
  const double held = trained.events("step").back().find("memory")->number();
  CAPTURE(expected, held);
  CHECK(held < 1.05 * expected);
  CHECK(held > 0.95 * expected);
}

TEST_CASE("a plan's bytes of a model with values that skip are those that training holds",
          "[apps]") {
  const bool recomputes = GENERATE(false, true);
  CAPTURE(recomputes);
  const Workplace here;
  here.write("unet.toml", own_unet);
  const auto config = here.write("run.toml", R"(
[model]
kind = "./unet.toml"
[data]
train = "made:glyphs"
[batch]
global = 64
micro = 16
[precision]
compute = "fp32"
[train]
steps = 2
)");
  const std::vector<std::string> common{
      config,
      "--output",
      "json",
      "--set",
      "pipeline.stages=1",
      "--set",
      recomputes ? "pipeline.recompute=true" : "pipeline.recompute=false"};
  const Ended planned = plan(here, common);
  INFO(planned.err);
  REQUIRE(planned.code == 0);
  const auto figures = parse_json(planned.out);
  REQUIRE(figures);
  const auto expected = static_cast<double>(bytes_of(figures->find("seats")->list()->front()));
  auto training = common;
  training.insert(training.begin(), "train");
  const Ended trained = troupe::tests::troupe(here, training);
  INFO(trained.err);
  REQUIRE(trained.code == 0);
  const double held = trained.events("step").back().find("memory")->number();
  CAPTURE(expected, held);
  CHECK(held < 1.05 * expected);
  CHECK(held > 0.9 * expected);
}

TEST_CASE("replicas divide the optimizer's state, unless one of them is the server", "[apps]") {
  const Workplace here;
  here.write("four.toml", "[[nodes]]\nname = \"n\"\ndevices = 4\nmemory = \"1GiB\"\n");
  const auto optimizer = [&](const std::string& exchange) {
    const Ended ended =
        plan(here, {small_gpt(here), "--cluster", "four.toml", "--output", "json", "--set",
                    "pipeline.replicas=4", "--set", "parallel.exchange=" + exchange});
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    const auto figures = parse_json(ended.out);
    REQUIRE(figures);
    const auto& seat = figures->find("seats")->list()->front();
    return *seat.find("bytes")->find("optimizer")->integer();
  };
  const auto all = optimizer("server"), one = optimizer("all_to_all");
  // A section differs from an equal share by at most a block: 65,536 numbers of two moments.
  CHECK(one >= all / 4);
  CHECK(one <= all / 4 + 2 * 4 * 65'536 + 100);
}

TEST_CASE("a plan for too small a cluster names the stage, the bytes and the fewest devices",
          "[apps]") {
  const Workplace here;
  const std::string config = small_gpt(here);
  here.write("small.toml", "[[nodes]]\nname = \"n\"\ndevices = 2\nmemory = \"9MiB\"\n");
  const Ended two = plan(here, {config, "--cluster", "small.toml", "--set", "pipeline.stages=2"});
  CAPTURE(two.err);
  CHECK(two.code == 3);
  CHECK(has(two.err, "error: stage 0 (h.0 to h.1) does not fit: n:0 needs "));
  CHECK(has(two.err, " MiB and has 9.00 MiB, "));
  CHECK(has(two.err,
            " too little; the fewest devices with 9.00 MiB that would do are 4, with "
            "stages = 4 and one replica"));

  here.write("large.toml", "[[nodes]]\nname = \"n\"\ndevices = 4\nmemory = \"9MiB\"\n");
  const Ended four = plan(here, {config, "--cluster", "large.toml", "--set", "pipeline.stages=4"});
  CAPTURE(four.err);
  CHECK(four.code == 0);
  CHECK(four.out.starts_with("1f1b, 4 stages, 1 replica, 4 devices, 4 micro-batches a step\n"));
}

TEST_CASE("stage boundaries that skip or repeat a layer are refused", "[apps]") {
  const Workplace here;
  const std::string gpt = small_gpt(here), mlp = (configurations / "mlp.toml").string();
  const auto refused = [&](const std::string& config, const std::string& boundaries) {
    const Ended ended = plan(here, {config, "--set", "pipeline.stages=" + boundaries});
    CHECK(ended.code == 3);
    return ended.err;
  };
  CHECK(has(refused(gpt, "[0, 3]"), "pipeline.stages ends at 3, but model.layers = 4"));
  CHECK(has(refused(gpt, "[1, 4]"), "found a list [1, 4]"));
  CHECK(has(refused(gpt, "[0, 3, 2, 4]"), "found a list [0, 3, 2, 4]"));
  CHECK(has(refused(mlp, "[0, 1, 2]"), "ends at 2, but the model has 3 layers"));
}

TEST_CASE("an error in a cluster file names its place", "[apps]") {
  const Workplace here;
  const std::string config = small_gpt(here);
  here.write("bad.toml", "[[nodes]]\nname = \"n\"\nmemory = 3.5\n");
  const Ended ended = plan(here, {config, "--cluster", "bad.toml"});
  CAPTURE(ended.err);
  CHECK(ended.code == 3);
  CHECK(ended.err.starts_with("error: bad.toml:3:"));
}

TEST_CASE("a plan explains its numbers, and how it changes when nodes leave or come", "[apps]") {
  const Workplace here;
  const std::string config = small_gpt(here);
  const std::vector<std::string> two_nodes{config, "--nodes", "2", "--set", "pipeline.stages=2"};
  const Ended table = plan(here, two_nodes);
  CHECK(table.code == 0);
  CHECK(has(table.out, "here0:0"));
  CHECK(has(table.out, "here1:0"));
  CHECK(has(table.out, "here1 fails "));

  auto explained = two_nodes;
  explained.push_back("--explain");
  const Ended formulas = plan(here, explained);
  CHECK(has(formulas.out, "weights = 1 versions (1 in use, 0 in the making) x "));
  CHECK(has(formulas.out, "total = weights + gradients + optimizer + activations + buffers = "));
}

TEST_CASE("the model of a step lists each kernel with its time at the GPU's peaks", "[apps]") {
  const Workplace here;
  const std::string config = (configurations / "gpt-tiny.toml").string();
  const std::vector<std::string> order{config,      "--device", "h200",
                                       "--explain", "--set",    "pipeline.stages=1"};
  auto as_json = order;
  as_json.insert(as_json.end(), {"--output", "json"});
  const Ended listed = plan(here, as_json);
  INFO(listed.err);
  REQUIRE(listed.code == 0);
  const auto figures = parse_json(listed.out);
  REQUIRE(figures);
  CHECK(*figures->find("precision")->text() == "bf16-gpu");
  CHECK(*figures->find("micro_batches")->integer() == 8);
  double seconds = 0, forward_operations = 0;
  const Value& stage = figures->find("stages")->list()->front();
  for (const char* part : {"forward", "backward", "end"})
    for (const Value& kernel : *stage.find(part)->list()) {
      const double bytes = kernel.find("bytes")->number();
      const double operations = kernel.find("operations")->number();
      const double times = kernel.find("times")->number();
      CAPTURE(*kernel.find("kernel")->text());
      CHECK(kernel.find("seconds")->number() ==
            Approx(std::max(bytes / 4.8e12, operations / 989.4e12)));
      CHECK(kernel.find("measured_seconds")->number() ==
            Approx(std::max(bytes / 4.25e12, operations / 790e12)));
      seconds += times * kernel.find("seconds")->number();
      if (part == std::string("forward")) forward_operations += times * operations;
    }
  const Value& sums = *figures->find("datasheet");
  CHECK(sums.find("step_seconds")->number() == Approx(seconds));
  CHECK(sums.find("tokens_per_second")->number() == Approx(32 * 64 / seconds));
  CHECK(sums.find("share_of_peak")->number() ==
        Approx(3 * forward_operations / seconds / 989.4e12));

  const Ended table = plan(here, order);
  CHECK(table.code == 0);
  CHECK(table.out.starts_with(
      "NVIDIA H200, bf16-gpu, 8 micro-batches of 4 samples, 1 stage on 1 GPU\n"));
  CHECK(has(table.out, "The fullest GPU holds "));
  CHECK(has(table.out, "stage 0 (h.0 .. h.3)\n"));
  CHECK(has(table.out, " 256 x 512 x 128     32  "));
  const Ended sums_alone = plan(here, {config, "--device", "h200"});
  CHECK(sums_alone.code == 0);
  CHECK(has(sums_alone.out, "2 stages on 2 GPUs\n"));
  CHECK(has(sums_alone.out, "a step, if no GPU ever waits"));
  CHECK_FALSE(has(sums_alone.out, "multiply_to_gelu"));
}

TEST_CASE("the model of a step refuses what it does not cover", "[apps]") {
  const Workplace here;
  const std::string config = small_gpt(here);
  const auto refused = [&](const std::string& setting) {
    const Ended ended =
        plan(here, {config, "--device", "h100", "--set", "pipeline.stages=2", "--set", setting});
    CHECK(ended.code == 3);
    return ended.err;
  };
  CHECK(has(refused("pipeline.replicas=2"), "pipeline.replicas: found 2, wanted 1"));
  CHECK(has(refused("pipeline.schedule=pipedream"), "wanted a synchronous schedule"));
  CHECK(has(refused("precision.compute=bf16-pairs"),
            "precision.compute: found \"bf16-pairs\", whose products the cores compute"));
  const Ended unknown = plan(here, {config, "--device", "v100"});
  CHECK(unknown.code == 2);
  CHECK(has(unknown.err, "v100"));
}

TEST_CASE("a plan can use a profile that was measured elsewhere", "[apps]") {
  const Workplace here;
  const std::string config = small_gpt(here);
  const Ended measured =
      troupe::tests::troupe(here, {"bench", "kernels", "--profile", "host.json"});
  CAPTURE(measured.err);
  REQUIRE(measured.code == 0);
  const std::vector<std::string> order{config, "--profile", "host.json", "--output", "json"};
  const Ended first = plan(here, order);
  CAPTURE(first.err);
  CHECK(first.code == 0);
  // A profile that was measured is not measured again.
  CHECK(plan(here, order).out == first.out);
}
