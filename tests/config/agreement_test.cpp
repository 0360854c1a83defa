#include "config/agreement.h"

#include "catch.h"
#include "good_run.h"

using namespace troupe;
using namespace troupe::config;

TEST_CASE("a batch size must be a multiple of the micro-batch size", "[config]") {
  CHECK(complaints({"batch.global=50", "batch.micro=8", "pipeline.replicas=2"}) ==
        "--set:1:14: error: batch.global = 50 is not divisible by batch.micro = 8 x replicas = 2 "
        "(= 16); nearest: 48, 64\n"
        "    1 | batch.global=50\n"
        "      |              ^~\n");
  CHECK(
      complaint({"batch.global=4", "batch.micro=8"}) ==
      "error: batch.global = 4 is not divisible by batch.micro = 8 x replicas = 1 (= 8); nearest: "
      "8");
  CHECK(complaint({"batch.global=50", "batch.micro=auto", "pipeline.replicas=4"}) ==
        "error: batch.global = 50 is not divisible by pipeline.replicas = 4; nearest: 48, 52");
  CHECK(complaints({"batch.global=48", "batch.micro=8", "pipeline.replicas=2"}).empty());
}

TEST_CASE("a stage has at least one layer", "[config]") {
  CHECK(
      complaint({"pipeline.stages=8"}) ==
      "error: pipeline.stages = 8, but model.layers = 6 and a stage needs at least one layer; use "
      "at most 6");
  CHECK(complaint({"pipeline.stages=[0, 3, 7]"}) ==
        "error: pipeline.stages ends at 7, but model.layers = 6; the boundaries begin with 0 and "
        "end with 6");
  CHECK(complaints({"pipeline.stages=[0, 3, 6]"}).empty());
  CHECK(complaints({"pipeline.stages=[0, 7, 12]", "pipeline.cuts=sublayers"}).empty());
  CHECK(
      complaint({"pipeline.stages=[0, 3, 6]", "pipeline.cuts=sublayers"}) ==
      "error: pipeline.stages ends at 6, but the model has 12 sublayers; the boundaries begin with "
      "0 and end with 12");
  const auto perceptron = load_text(
      "model = { kind = \"mlp\", dims = [2, 3, 4] }\ndata.train = \"made:gaussians\"\n"
      "batch.global = 4\ntrain.steps = 1\npipeline.stages = 3\n");
  CHECK(perceptron.error().text.find("pipeline.stages = 3, but the model has 2 layers and a stage "
                                     "needs at least one layer; use at most 2") !=
        std::string::npos);
}

TEST_CASE("chunks divide the stages", "[config]") {
  CHECK(complaint({"pipeline.stages=6", "pipeline.chunks=4", "pipeline.schedule=interleaved"}) ==
        "error: pipeline.stages = 6 is not divisible by pipeline.chunks = 4; nearest: 4, 8");
}

TEST_CASE("a model's own rules are checked", "[config]") {
  CHECK(complaints({"model.width=50"}) ==
        "--set:1:13: error: model.width = 50 is not divisible by model.heads = 6; nearest: 5, 10\n"
        "    1 | model.width=50\n"
        "      |             ^~\n");
}

TEST_CASE("the vocabulary may come from the data", "[config]") {
  const auto loaded = load_text(good_run, {"model.vocab=auto"});
  REQUIRE(loaded.ok());
  CHECK(loaded->config.model.vocabulary_from_data());
  CHECK(*loaded->config.model.options_for(77).find("vocab")->integer() == 77);
}

TEST_CASE("the number of heads must be a multiple of pipeline.tensor", "[config]") {
  CHECK(complaint({"pipeline.tensor=4"}) ==
        "error: model.heads = 6 is not divisible by pipeline.tensor = 4; nearest: 4, 8");
}

TEST_CASE("a schedule is a known name or a file", "[config]") {
  CHECK(complaints({"pipeline.schedule=1f2b"}) ==
        "--set:1:19: error: pipeline.schedule = \"1f2b\" is neither a schedule of `troupe schedule "
        "--list` nor a file\n    1 | pipeline.schedule=1f2b\n      |                   ^~~~ did "
        "you mean '1f1b'?\n");
  CHECK(complaints({"pipeline.schedule=auto"}).empty());
  CHECK(complaints({"pipeline.schedule=my/own.schedule"}).empty());
  CHECK(complaints({"pipeline.schedule=gpipe"}).empty());
}

TEST_CASE("a schedule gets the shape that it needs", "[config]") {
  CHECK(complaint({"pipeline.schedule=dualpipe", "pipeline.stages=3"})
            .starts_with(
                "error: pipeline.schedule: dualpipe needs an even number of devices, found 3"));
  CHECK(complaint({"pipeline.schedule=1f1b", "pipeline.stages=4", "pipeline.chunks=2"})
            .starts_with("error: pipeline.schedule: 1f1b has one stage on each device"));
}

TEST_CASE("replicas share whole groups of micro-batches", "[config]") {
  CHECK(
      complaint({"batch.micro=1", "pipeline.replicas=16"}) ==
      "error: pipeline.replicas = 16, but gradients are summed in 8 groups and a replica needs at "
      "least one; set parallel.groups = 16 or more, up to 32");
  CHECK(complaints({"batch.micro=1", "pipeline.replicas=16", "parallel.groups=16"}).empty());
  CHECK(
      complaint({"parallel.groups=9"}) ==
      "error: parallel.groups = 9, but batch.global = 32 / batch.micro = 4 makes 8 micro-batches; "
      "use at most 8");
}

TEST_CASE("a learning rate's warm-up must be shorter than its schedule", "[config]") {
  CHECK(complaints({"optimizer.schedule.kind=cosine", "optimizer.schedule.warmup_steps=1000",
                    "train.steps=2"})
            .empty());  // A short trial may end during the warm-up.
  CHECK(
      complaint({"optimizer.schedule={ kind = \"linear\", warmup_steps = 9, total_steps = 5 }"}) ==
      "error: optimizer.schedule.warmup_steps = 9 is not less than optimizer.schedule.total_steps "
      "= 5; warm up for fewer steps");
  CHECK(complaints({"optimizer.schedule.warmup_steps=5000"}).empty());  // Constant behind it.
  CHECK(complaint({"optimizer.schedule.min_lr=0.1", "optimizer.lr=0.01"}) ==
        "error: optimizer.schedule.min_lr = 0.1 is more than optimizer.lr = 0.01");
}

TEST_CASE("nesterov needs a momentum", "[config]") {
  CHECK(complaint({"optimizer.kind=sgd", "optimizer.nesterov=true"}) ==
        "error: optimizer.nesterov needs a momentum, but optimizer.momentum = 0");
}

TEST_CASE("an evaluation needs data", "[config]") {
  CHECK(complaint({"train.eval_every=10"}) ==
        "error: train.eval_every = 10, but data.validate is not set");
  CHECK(complaints({"train.eval_every=10", "data.validate=made:markov?stream=1"}).empty());
  CHECK(complaint({"train.stop_after=3"}) ==
        "error: train.stop_after = 3 counts evaluations, but train.eval_every is not set");
  CHECK(complaint({"train.min_improvement=0.5"}) ==
        "error: train.min_improvement = 0.5 has no effect, because train.stop_after is not set");
  CHECK(complaint({"checkpoint.keep_best=1"}) ==
        "error: checkpoint.keep_best = 1 needs evaluations, but data.validate is not set");
  CHECK(complaints({"train.eval_every=10", "train.stop_after=3", "train.min_improvement=0.5",
                    "checkpoint.keep_best=1", "data.validate=made:markov?stream=1"})
            .empty());
}

TEST_CASE("names and paths must be valid in file names", "[config]") {
  CHECK(complaint({"name=../x"}) ==
        "error: name = \"../x\" is not a valid name; use up to 64 letters, digits, dots, dashes "
        "and underscores, and no leading dot");
  CHECK(complaint({"name=\"\""}).starts_with("error: name = \"\" is not a valid name"));
  CHECK(complaint({"checkpoint.dir=runs/{nmae}"}) ==
        "error: checkpoint.dir = \"runs/{nmae}\" is not a valid path; {name} is the only "
        "placeholder");
  CHECK(complaint({"train.export=final.bin"}) ==
        "error: train.export = \"final.bin\" does not end in .safetensors");
  CHECK(complaint({"model.init=zeros"}) ==
        "error: model.init = \"zeros\" is neither random, nor run:NAME, nor a file that ends in "
        ".safetensors, nor a folder such as ./gpt2");
  CHECK(complaints({"model.init=run:own"}).empty());
  CHECK(complaints({"model.init=./gpt2"}).empty());
  CHECK_FALSE(complaints({"model.init=run:"}).empty());
}

TEST_CASE("fp16 needs a synchronous schedule", "[config]") {
  CHECK(complaint({"precision.compute=fp16", "pipeline.schedule=pipedream"}) ==
        "error: precision.compute = \"fp16\" does not work with the asynchronous schedule "
        "\"pipedream\": all stages must skip a step whose gradients overflow, but each stage of "
        "this schedule steps on its own; use \"bf16\" or \"fp32\", or a synchronous schedule such "
        "as \"1f1b\"");
  CHECK(complaint({"precision.compute=bf16", "pipeline.schedule=pipedream"}).empty());
  for (const std::string name : {"fp16-chain", "fp16-gpu"})
    CHECK(complaint({"precision.compute=" + name, "pipeline.schedule=pipedream"})
              .starts_with("error: precision.compute = \"" + name + "\" does not work"));
  CHECK(complaint({"precision.compute=fp16", "pipeline.schedule=zb-h1"}).empty());
}

TEST_CASE("a limit must exceed the limits that it includes", "[config]") {
  CHECK(complaint({"limits.silence_floor=5s"}) ==
        "error: limits.silence_floor = \"5s\" must be shorter than limits.reconnect_patience = "
        "\"1s\"");
  CHECK(complaint({"limits.suspend_patience=5m"}) ==
        "error: limits.head_patience = \"10m\" must be shorter than limits.suspend_patience = "
        "\"5m\"");
}

TEST_CASE("both multiples next to a number are suggested", "[config]") {
  CHECK(nearest_multiples(50, 16) == "48, 64");
  CHECK(nearest_multiples(4, 16) == "16");
}

TEST_CASE("asynchronous schedules leave out no step", "[config]") {
  const std::string schedule = "pipeline.schedule=pipedream";
  CHECK(complaint({"train.on_spike=skip", schedule}) ==
        "error: train.on_spike = \"skip\" does not work with the asynchronous schedule "
        "\"pipedream\": its stages have used later samples before the loss of a step is known; use "
        "a synchronous schedule such as \"1f1b\", or train.on_spike = \"stop\"");
  CHECK(complaint({"train.skip_steps=[3]", schedule})
            .starts_with("error: train.skip_steps does not work with the asynchronous schedule"));
  CHECK(complaints({"train.on_spike=stop", schedule}).empty());
  CHECK(complaints({"train.on_spike=skip"}).empty());
  CHECK(complaint({"train.skip_steps=[7, 7]"}) ==
        "error: train.skip_steps is not in order; write each step once, the lowest first");
}
