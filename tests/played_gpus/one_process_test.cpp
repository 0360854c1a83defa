// `troupe train` with GPUs in one process.

#include <signal.h>
#include <time.h>

#include <filesystem>

#include "played_gpus/runs.h"

using namespace troupe;
using namespace troupe::tests;

TEST_CASE("in fp32 a GPU has the bits of the cores, with one stage and with several", "[apps]") {
  for (const auto& kind : kinds) {
    const Workplace here;
    here.write("run.toml", configuration(kind));
    CAPTURE(kind.model);
    const auto wanted = train(here, {});
    CHECK(train(here, on_gpu) == wanted);
    CHECK(train(here, on_gpu + Settings{"pipeline.stages=2"}) == wanted);
    CHECK(train(here, on_gpu + Settings{"pipeline.replicas=2", "train.graph_rows=0"}) == wanted);
  }
}

TEST_CASE("two GPUs of a process read each other's memory if they reach it", "[apps]") {
  const Workplace here;
  here.write("run.toml", configuration(gpt2));
  const auto wanted = train(here, {});
  const auto path = (here.path() / "tale").string();
  const Variable tale("CUDA_ON_CORES_TALE", path), count("CUDA_ON_CORES_GPUS", "2");
  const auto settings = on_gpu + Settings{"pipeline.stages=4", "pipeline.schedule=1f1b"};
  CHECK(train(here, settings) == wanted);
  CHECK(tale_at(path) == Lines{"GPU 0", "GPU 1", "copies by way of the host"});
  std::filesystem::remove(path);
  const Variable peers("CUDA_ON_CORES_PEERS", "1");
  CHECK(train(here, settings) == wanted);
  CHECK(tale_at(path) == Lines{"GPU 0", "GPU 1"});
}

TEST_CASE("with tensor cores a GPU has the same bits with every plan", "[apps]") {
  const Workplace here;
  here.write("run.toml", configuration(gpt2));
  for (const std::string precision : {"bf16", "fp16", "tf32"}) {
    const auto computing = on_gpu + Settings{"precision.compute=" + precision};
    const auto wanted = train(here, computing);
    CHECK(train(here, computing + Settings{"pipeline.stages=4"}) == wanted);
    CHECK(train(here, computing + Settings{"pipeline.stages=2", "pipeline.replicas=2"}) == wanted);
    CHECK(train(here, computing + Settings{"pipeline.stages=2", "pipeline.recompute=true"}) ==
          wanted);
  }
}

TEST_CASE("a run reports once that a slower kernel replaces cuDNN", "[apps]") {
  const Workplace here;
  here.write("run.toml", configuration({"kind = \"gpt2\"\nvocab = 32\ncontext = 16\nwidth = 12\n"
                                        "heads = 2\nlayers = 2",
                                        gpt2.data}));
  train(here, on_gpu + Settings{"precision.compute=bf16", "pipeline.stages=2"});
  const auto warnings = events(here, "run", "warn");
  const std::string what =
      "attention over 16 positions, in heads of 6 numbers in bf16: the width of heads is no "
      "multiple of 8";
  const std::string who = "in place of cuDNN a slower kernel in fp32 computes ";
  REQUIRE(warnings.size() == 2);
  CHECK(*warnings[0].find("text")->text() == who + what);
  CHECK(*warnings[1].find("text")->text() == who + "the way back of " + what);
}

TEST_CASE("late gradients have the same bits on GPUs and on the cores", "[apps]") {
  const Workplace here;
  here.write("run.toml", configuration(gpt2));
  for (const std::string preset : {"stale", "ws", "msnag", "ws_msnag_ga"}) {
    const Settings late{"pipeline.stages=2", "pipeline.schedule=pipedream",
                        "staleness.preset=" + preset, "train.steps=6"};
    CHECK(train(here, on_gpu + late) == train(here, late));
  }
}

TEST_CASE("a killed run on a GPU resumes with the same bits, also on the cores", "[apps]") {
  const Settings longer{"train.steps=30", "checkpoint.every=2 steps"};
  const Workplace undisturbed;
  undisturbed.write("run.toml", configuration(gpt2));
  const auto wanted = train(undisturbed, longer);
  for (const auto& then : {on_gpu, Settings{"train.device=cpu"}}) {
    const Workplace here;
    here.write("run.toml", configuration(gpt2));
    Launch launch;
    launch.arguments = with({"train", "run.toml", "-q"}, on_gpu + longer);
    launch.while_it_runs = [&](pid_t child) {
      while (events(here, "run", "checkpoint.saved").size() < 2) {
        const timespec pause{0, 1'000'000};
        nanosleep(&pause, nullptr);
      }
      kill(child, SIGKILL);
    };
    REQUIRE(troupe::tests::troupe(here, launch).code == 128 + SIGKILL);
    CHECK(train(here, then + longer, {"--resume"}) == wanted);
  }
}
