#include <cstdio>
#include <string>

#include "apps/program.h"
#include "catch.h"
#include "core/json.h"

using namespace troupe;
using namespace troupe::tests;

TEST_CASE("Hugging Face weights are imported, exported byte for byte, and sampled from", "[apps]") {
  const Workplace here;
  // Makes a small GPT-2 as the ecosystem saves it: trains zero steps, exports the weights and
  // imports them.
  here.write("gpt.toml", R"(
name = "g"
[model]
kind = "gpt2"
vocab = 256
context = 32
width = 32
heads = 2
layers = 2
[data]
train = "made:markov?states=256"
[batch]
global = 2
micro = 1
[train]
steps = 1
export = "weights.safetensors"
)");
  REQUIRE(troupe::tests::troupe(here, {"train", "gpt.toml"}).code == 0);
  here.write("config.json", R"({"model_type": "gpt2", "vocab_size": 256, "n_positions": 32,
                               "n_embd": 32, "n_layer": 2, "n_head": 2})");
  const Ended in = troupe::tests::troupe(
      here, {"checkpoint", "import", "weights.safetensors", "--to", "imported"});
  INFO(in.err);
  REQUIRE(in.code == 0);
  REQUIRE(
      troupe::tests::troupe(here, {"checkpoint", "export", "imported", "--to", "again.safetensors"})
          .code == 0);
  CHECK(here.read("again.safetensors") == here.read("weights.safetensors"));

  const auto sample = [&](const std::string& seed) {
    const Ended ended = troupe::tests::troupe(
        here,
        {"sample", "imported", "--prompt", "ab", "--tokens", "20", "--top-k", "5", "--seed", seed});
    INFO(ended.err);
    CHECK(ended.code == 0);
    CHECK(ended.out.starts_with("ab"));
    return ended.out;
  };
  CHECK(sample("1") == sample("1"));
  CHECK(sample("1") != sample("2"));

  const Ended eval =
      troupe::tests::troupe(here, {"eval", "imported", "--data", "made:markov?states=256",
                                   "--samples", "8", "--output", "json"});
  INFO(eval.err);
  REQUIRE(eval.code == 0);
  CHECK(parse_json(eval.out)->find("loss")->number() > 0);
}

TEST_CASE("every event has a type and a run, and its numbers are read back unchanged", "[apps]") {
  const Workplace here;
  here.write("run.toml", R"(
name = "e"
[model]
kind = "mlp"
dims = [8, 16, 4]
[data]
train = "made:gaussians?dims=8&classes=4"
validate = "made:gaussians?dims=8&classes=4&stream=1"
[batch]
global = 8
micro = 4
[train]
steps = 3
)");
  const Ended ended = troupe::tests::troupe(here, {"train", "run.toml", "--output", "json"});
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  CHECK(ended.events("step").size() == 3);
  CHECK(ended.events("eval").size() == 1);
  CHECK(ended.events("checkpoint.saved").size() == 1);
  CHECK(ended.events("run.state").size() == 2);
  CHECK(ended.out == here.read("runs/e/events.jsonl"));
}

TEST_CASE("an error about an unknown command suggests a similar one", "[apps]") {
  const Workplace here;
  const auto said = [&](const std::vector<std::string>& words) {
    const Ended ended = troupe::tests::troupe(here, words);
    CHECK(ended.code == 2);
    return ended.err;
  };
  CHECK(said({"trian", "x.toml"}) ==
        "troupe: there is no command 'trian'; is `troupe train` meant? see `troupe --help`\n");
  CHECK(said({"prune"}) ==
        "troupe: there is no command 'prune'; is `troupe checkpoint prune` meant? see `troupe "
        "--help`\n");
  CHECK(said({"checkpoint", "inspekt", "x"}) ==
        "troupe checkpoint: there is no command 'inspekt'; is `troupe checkpoint inspect` meant? "
        "see `troupe checkpoint --help`\n");
  CHECK(said({"xyzzy"}) == "troupe: there is no command 'xyzzy'; see `troupe --help`\n");
  // These flags existed and changed nothing.
  for (const std::string flag : {"-v", "--verbose", "--no-color"})
    CHECK(said({"runs", flag}).starts_with("troupe runs: there is no option " + flag + "; "));
  CHECK(said({"train", "--hlep"}) ==
        "troupe train: there is no option --hlep; is --help meant?; see `troupe train --help`\n");
  CHECK(said({"train", "x.toml", "--lr", "1e-3"}) ==
        "troupe train: there is no option --lr; is --set optimizer.lr=VALUE meant?; see `troupe "
        "train --help`\n");
  for (const auto& between : {std::vector<std::string>{}, {"="}}) {
    std::vector<std::string> split{"train", "x.toml", "--set", "optimizer.lr"};
    split.insert(split.end(), between.begin(), between.end());
    split.push_back("1e-3");
    CHECK(said(split) ==
          "troupe train: found --set optimizer.lr and 1e-3; write --set optimizer.lr=1e-3\n");
  }
  CHECK(said({"status", "x"}) ==
        "troupe status: The following argument was not expected: x; see `troupe status --help`\n");
  CHECK(said({"node", "--cores", "many"}) ==
        "troupe node: Could not convert: --cores = many; see `troupe node --help`\n");
  // Bounds of a type say nothing.
  CHECK(said({"schedule", "1f1b", "--stages", "0"}) ==
        "troupe schedule: --stages: found 0, wanted a number above 0; see `troupe schedule "
        "--help`\n");
  CHECK(said({"sim", "x.toml", "--notice", "-1"}) ==
        "troupe sim: --notice: found -1, wanted 0 or a number above it; see `troupe sim --help`\n");
}

TEST_CASE("troupe bench compares training with the machine's peak", "[apps]") {
  const Workplace here;
  const Ended ended = troupe::tests::troupe(
      here, {"bench", "train", "--alone", "--model", "gpt-tiny", "--rounds", "1"});
  INFO(ended.out << ended.err);
  REQUIRE(ended.code == 0);
  CHECK(ended.out.starts_with("gpt-tiny: 4 layers of width 128"));
  CHECK(ended.out.find("gpt-small") == std::string::npos);
  const auto row = ended.out.find("troupe fp32, 1 core");
  REQUIRE(row != std::string::npos);
  double rate = 0, share = 0;
  REQUIRE(std::sscanf(ended.out.c_str() + row, "troupe fp32, 1 core %lf %lf", &rate, &share) == 2);
  CHECK(rate > 0);
  CHECK((share > 0 && share < 1));
}
