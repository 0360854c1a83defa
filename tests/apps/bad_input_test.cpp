#include <filesystem>

#include "apps/program.h"
#include "catch.h"

using namespace troupe;
using namespace troupe::tests;

namespace {

const std::string good = R"(name = "x"
[model]
kind = "gpt2"
vocab = 32
context = 16
width = 32
heads = 2
layers = 2
[data]
train = "made:markov?states=32"
[batch]
global = 8
micro = 2
[train]
steps = 2
)";

struct Case {
  std::string what;
  std::vector<std::string> arguments;
  int code;
  std::vector<std::string> says;
};

}  // namespace

TEST_CASE("bad input gives the right exit code and an error that names the place", "[apps]") {
  const Workplace here;
  here.write("good.toml", good);
  here.write("typo.toml", good + "stepz = 3\n");
  here.write("broken.toml", "name = \n");
  here.write("truncated.safetensors", std::string("\x40\0\0\0\0\0\0\0{", 9));
  here.write("small.txt", "abc");
  const auto set = [](const std::string& setting) {
    return std::vector<std::string>{"train", "good.toml", "--set", setting};
  };
  const Case cases[] = {
      {"no command", {}, 2, {}},
      {"unknown command", {"trian"}, 2, {}},
      {"unknown flag", {"train", "good.toml", "--bogus"}, 2, {"--bogus"}},
      {"missing file", {"train", "none.toml"}, 3, {"none.toml"}},
      {"not TOML", {"train", "broken.toml"}, 3, {"broken.toml:1:"}},
      {"unknown key",
       {"train", "typo.toml"},
       3,
       {"typo.toml:16:1: error: unknown key 'train.stepz'", "did you mean 'train.steps'?"}},
      {"wrong type", set("train.steps=many"), 3, {"train.steps"}},
      {"impossible arithmetic",
       set("batch.global=7"),
       3,
       {"batch.global = 7", "batch.micro = 2", "nearest: 6, 8"}},
      {"more stages than layers",
       set("pipeline.stages=8"),
       3,
       {"pipeline.stages = 8", "model.layers = 2", "use at most 2"}},
      {"layers that are cut",
       set("pipeline.tensor=2"),
       3,
       {"error: pipeline.tensor = 2: this version does not support tensor parallelism"}},
      {"a plan of layers that are cut",
       {"plan", "good.toml", "--set", "pipeline.tensor=2"},
       3,
       {"error: pipeline.tensor = 2: this version does not support tensor parallelism"}},
      {"heads do not divide", set("model.heads=5"), 3, {"heads", "32"}},
      {"vocabulary too small", set("model.vocab=16"), 3, {"data.train", "vocab"}},
      {"what GPUs alone compute",
       set("precision.compute=bf16-gpu"),
       3,
       {"precision.compute = \"bf16-gpu\"", "train.device = \"cpu\"",
        "set train.device = \"cuda\", or use \"bf16\""}},
      {"what cores have not",
       set("precision.compute=tf32"),
       3,
       {"precision.compute = \"tf32\"", "train.device = \"cpu\"",
        "set train.device = \"cuda\", or use \"fp32\""}},
      {"fp16 of GPUs alone",
       set("precision.compute=fp16-gpu"),
       3,
       {"precision.compute = \"fp16-gpu\"", "train.device = \"cpu\"",
        "set train.device = \"cuda\", or use \"fp16\""}},
      {"instructions that no processor has",
       {"bench", "train", "--isa", "sse9"},
       3,
       {"--isa: \"sse9\" names no set of instructions; use one that this processor has: "}},
      {"missing data", set("data.train=none.bin"), 3, {"data.train", "none.bin"}},
      {"too little text", set("data.train=small.txt"), 3, {"small.txt"}},
      {"unknown option of made data",
       set("data.train=made:markov?stats=3"),
       3,
       {"stats", "states"}},
      {"truncated weights", set("model.init=truncated.safetensors"), 3, {"truncated.safetensors"}},
      {"asynchronous", set("pipeline.schedule=pipedream"), 3, {"pipedream"}},
      {"fewer than no nodes", {"train", "good.toml", "--nodes=-3"}, 3, {"--nodes -3"}},
      {"no such schedule",
       {"schedule", "1f1c", "--stages", "2", "--micro-batches", "2"},
       3,
       {"1f1c", "1f1b"}},
      {"absurd schedule",
       {"schedule", "1f1b", "--stages", "1000000000", "--micro-batches", "4"},
       3,
       {"1000000000"}},
      {"absurd micro-batches",
       {"schedule", "1f1b", "--stages", "4", "--micro-batches", "1000000000"},
       3,
       {"1000000000"}},
      {"negative costs",
       {"schedule", "1f1b", "--stages", "4", "--micro-batches", "4", "--costs", "1,-1,1,0"},
       3,
       {"--costs"}},
      {"costs that are no numbers",
       {"schedule", "1f1b", "--stages", "4", "--micro-batches", "4", "--costs", "1,nan,1,0"},
       3,
       {"--costs"}},
      {"no checkpoint", {"checkpoint", "verify", "nowhere"}, 3, {"nowhere"}},
  };
  for (const auto& c : cases) {
    INFO(c.what);
    const Ended ended = troupe::tests::troupe(here, c.arguments);
    INFO(ended.err << ended.out);
    CHECK(ended.code == c.code);
    for (const auto& text : c.says) {
      INFO("wanted: " << text);
      CHECK((ended.err + ended.out).find(text) != std::string::npos);
    }
  }
}

TEST_CASE("a loss that is not a number stops the run and names the step and micro-batch",
          "[apps]") {
  const Workplace here;
  here.write("good.toml", good);
  const Ended ended = troupe::tests::troupe(
      here, {"train", "good.toml", "--set", "optimizer.kind=sgd", "--set", "optimizer.lr=1000",
             "--set", "train.steps=50", "--set", "checkpoint.every=1 steps"});
  INFO(ended.err);
  CHECK(ended.code == 1);
  CHECK(ended.err.find("the loss is not a finite number") != std::string::npos);
  CHECK(ended.err.find("micro-batch") != std::string::npos);
  CHECK(ended.err.find("--resume") != std::string::npos);
}

TEST_CASE("a checkpoint of another model is refused", "[apps]") {
  const Workplace here;
  here.write("good.toml", good);
  REQUIRE(troupe::tests::troupe(here, {"train", "good.toml"}).code == 0);
  const Ended ended =
      troupe::tests::troupe(here, {"train", "good.toml", "--set", "model.width=64", "--resume"});
  INFO(ended.err);
  CHECK(ended.code == 3);
  CHECK(ended.err.find("width") != std::string::npos);
}

TEST_CASE("a schedule file whose updates do not end a step is refused before training", "[apps]") {
  const Workplace here;
  here.write("good.toml", good);
  const auto write = [&](const std::string& name, const std::string& schedule) {
    const Ended made = troupe::tests::troupe(
        here, {"schedule", schedule, "--stages", "2", "--micro-batches", "4", "--format", "text"});
    REQUIRE(made.code == 0);
    here.write(name, made.out);
  };
  write("late.txt", "pipedream");
  write("even.txt", "1f1b");
  const auto run = [&](std::vector<std::string> command, const std::string& file) {
    command.insert(command.end(), {"good.toml", "--set", "pipeline.schedule=" + file, "--set",
                                   "pipeline.stages=2"});
    return troupe::tests::troupe(here, command);
  };
  for (const auto& command : {std::vector<std::string>{"config", "check"}, {"plan"}, {"train"}}) {
    const Ended refused = run(command, "late.txt");
    INFO(command[0] << ": " << refused.err << refused.out);
    CHECK(refused.code == 3);
    CHECK(refused.err.find("updates stage 0 after micro-batches 0, 1, 2, 3") != std::string::npos);
    CHECK(refused.err.find("must come after 3") != std::string::npos);
    const Ended taken = run(command, "even.txt");
    INFO(taken.err);
    CHECK(taken.code == 0);
  }
  const Ended missing = run({"config", "check"}, "none.txt");
  CHECK(missing.code == 3);
  CHECK(missing.err.find("none.txt") != std::string::npos);
}

TEST_CASE("config check refuses what train refuses, with the data if it is asked to", "[apps]") {
  const Workplace here;
  const std::string config = TROUPE_TESTS "/../config/quickstart.toml";
  const auto check = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{"config", "check", config};
    words.insert(words.end(), more.begin(), more.end());
    return troupe::tests::troupe(here, words);
  };
  const Ended form = check({"--set", "data.train=none.txt"});
  CHECK(form.code == 0);
  CHECK(form.out == config + ": good; data and model were not looked at (--data does)\n");
  const Ended absent = check({"--set", "data.train=none.txt", "--data"});
  CHECK(absent.code == 3);
  CHECK(absent.err ==
        "error: data.train: none.txt: cannot open: No such file or directory; it was "
        "looked for in " +
            std::filesystem::canonical(here.path()).string() + "\n");
  const Ended good = check({"--data"});
  CHECK(good.code == 0);
  CHECK(good.out == config + ": good\n");
  const Ended tensor = check({"--set", "pipeline.tensor=2"});
  CHECK(tensor.code == 3);
  CHECK(tensor.err.find("does not support tensor parallelism") != std::string::npos);
}
