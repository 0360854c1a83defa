#include <filesystem>
#include <string>
#include <vector>

#include "apps/models/digest_of_run.h"
#include "apps/program.h"
#include "catch.h"
#include "own_tiny.h"
#include "own_unet.h"

using namespace troupe;
using namespace troupe::tests;

namespace {

const std::string own_run = R"([model]
kind = "./tiny.toml"
width = 4
[data]
train = "made:glyphs"
[batch]
global = 16
micro = 4
[precision]
compute = "fp32"
[checkpoint]
every = "5 steps"
[train]
steps = 12
)";

/// Tokens, and their places in documents.
const std::string own_placed =
    R"toml(model = { format = 1, name = "placed", help = "Tokens and places." }
options.width = { least = 1, default = 4, help = "Width of a row." }
input.tokens = { type = "i32", shape = [8], below = 300 }
input.positions = { type = "i32", shape = [8], below = 8 }
loss = { kind = "cross_entropy", classes = 300, ignore = -100 }
part = [
  { name = "in", unit = "own", body = [{ embed = "words", rows = 300, width = "width" },
      { keep = "words" }, { embed = "places", of = "positions", rows = 8, width = "width" },
      { add = "words" }] },
  { name = "block{i}", repeat = { i = 3 }, body = [
      { residual = [{ norm = "norm", kind = "layer" }, { linear = "inner", out = "width" }, "relu"] }] },
  { name = "out", unit = "own", body = [{ linear = "head", out = 300 }] }]
)toml";

/// A text that is read, and another one that is written.
const std::string own_pairs =
    R"toml(model = { format = 1, name = "seen", help = "A text beside another one." }
options.width = { least = 1, default = 4, help = "Width of a row." }
input.source = { type = "i32", shape = [16], below = 300 }
input.decoder_tokens = { type = "i32", shape = [16], below = 300 }
loss = { kind = "cross_entropy", classes = 300, ignore = -100 }
every.embed = { rows = 300, width = "width" }
every.any = { init = "normal(1)" }
part = [
  { name = "in", unit = "own", body = [{ embed = "/words", of = "source" }] },
  { name = "inner", unit = "own", body = [{ linear = "one", out = "width" }, { keep = "memory" },
      { embed = "words", of = "decoder_tokens" }, { add = "memory" }] },
  { name = "out", unit = "own", body = [
      { linear = "/words", out = 300, bias = false, place = "edge" }] }]
)toml";

}  // namespace

TEST_CASE("a model of one's own has the same bits under every plan", "[apps]") {
  const Workplace here;
  here.write("tiny.toml", own_tiny);
  here.write("run.toml", own_run);
  const auto one = digest_of_run(here, {"name=one", "pipeline.stages=1"});
  CHECK(one == digest_of_run(here, {"name=four", "pipeline.stages=4"}));
  CHECK(one == digest_of_run(here, {"name=again", "pipeline.stages=4", "pipeline.recompute=true"}));
  CHECK(one ==
        digest_of_run(here, {"name=halves", "pipeline.stages=4", "pipeline.schedule=zb-h1"}));
  CHECK(one == digest_of_run(here, {"name=two", "pipeline.replicas=2", "pipeline.stages=2"}));
  CHECK(one != digest_of_run(here, {"name=wide", "model.width=5"}));
}

TEST_CASE("a U-Net of one's own has the same bits under every plan", "[apps]") {
  const Workplace here;
  here.write("tiny.toml", own_unet);
  here.write("run.toml", own_run);
  const auto with = [&](std::vector<std::string> settings) {
    settings.insert(settings.end(), {"train.steps=3", "data.train=made:glyphs"});
    return digest_of_run(here, settings);
  };
  const auto one = with({"name=one", "pipeline.stages=1"});
  CHECK(one == with({"name=five", "pipeline.stages=5", "pipeline.recompute=true"}));
  CHECK(one == with({"name=halves", "pipeline.stages=3", "pipeline.schedule=zb-h1"}));
  CHECK(one == with({"name=flushed", "pipeline.stages=4", "pipeline.schedule=gpipe"}));
  CHECK(one == with({"name=chunks", "pipeline.stages=4", "pipeline.chunks=2",
                     "pipeline.schedule=interleaved"}));
  CHECK(one == with({"name=two", "pipeline.replicas=2", "pipeline.stages=2"}));
  const Ended late = troupe::tests::troupe(
      here, {"train", "run.toml", "--set", "name=late", "--set", "pipeline.stages=3", "--set",
             "pipeline.schedule=pipedream", "--set", "train.steps=3"});
  INFO(late.err);
  CHECK(late.code == 0);
  CHECK(mentions(troupe::tests::troupe(here, {"model", "show", "tiny.toml"}).out,
                 "\nup0 receives [32, 7, 7], skip0 [8, 28, 28], skip1 [16, 14, 14]\n"));
}

TEST_CASE("a model whose targets are numbers has the same bits under every plan", "[apps]") {
  const Workplace here;
  here.write("tiny.toml", own_segmenter);
  here.write("run.toml", own_run);
  const auto with = [&](std::vector<std::string> settings) {
    settings.insert(settings.end(), {"train.steps=4", "data.train=made:glyphs?target=mask",
                                     "data.validate=made:glyphs?target=mask&stream=1",
                                     "train.eval_every=2", "checkpoint.keep_best=1"});
    return digest_of_run(here, settings);
  };
  const auto one = with({"name=one", "pipeline.stages=1"});
  CHECK(one == with({"name=five", "pipeline.stages=5", "pipeline.recompute=true"}));
  CHECK(one == with({"name=halves", "pipeline.stages=3", "pipeline.schedule=zb-h1"}));
  CHECK(one == with({"name=two", "pipeline.replicas=2", "pipeline.stages=2"}));
  const auto ask = [&](const std::vector<std::string>& words) {
    return troupe::tests::troupe(here, words);
  };
  CHECK(
      mentions(ask({"model", "show", "tiny.toml"}).out, "from [1, 28, 28] to numbers [1, 28, 28]"));
  const Ended eval = ask({"eval", "one@best"});
  INFO(eval.err);
  CHECK(eval.code == 0);
  CHECK(eval.out.starts_with("loss 0."));
  CHECK_FALSE(mentions(eval.out, "nats"));
  const Ended sample = ask({"sample", "one"});
  CHECK(sample.code == 3);
  CHECK(mentions(sample.err, "takes no tokens; only language models can be sampled from"));

  const auto check = [&](const std::string& data) {
    const Ended checked =
        ask({"config", "check", "run.toml", "--data", "--set", "data.train=" + data});
    CHECK(checked.code == 3);
    return checked.err;
  };
  CHECK(mentions(check("made:glyphs"), "has targets in i32, and the model's loss takes f32"));
  CHECK(mentions(check("made:glyphs?target=mask&size=20"), "its samples are f32 [1, 20, 20]"));
  const Ended smoothed =
      ask({"config", "check", "run.toml", "--data", "--set", "data.train=made:glyphs?target=mask",
           "--set", "model.loss.smoothing=0.1"});
  CHECK(smoothed.code == 3);
  CHECK(
      mentions(smoothed.err, "changes a loss over classes, and the loss of this model is binary"));

  here.write("tiny.toml", own_tiny);
  CHECK(mentions(check("made:glyphs?target=clean"),
                 "has targets in f32, and the model's loss takes i32"));
}

TEST_CASE("targets have the shape of the output", "[apps]") {
  const Workplace here;
  std::string text = own_segmenter;
  text.replace(text.find("out = 1, kernel = 1"), 7, "out = 2");
  here.write("tiny.toml", text);
  here.write("run.toml", own_run);
  const Ended checked = troupe::tests::troupe(
      here,
      {"config", "check", "run.toml", "--data", "--set", "data.train=made:glyphs?target=mask"});
  CHECK(checked.code == 3);
  CHECK(mentions(checked.err,
                 "its targets are f32 [1, 28, 28], and the model's output is [2, 28, 28]; its loss "
                 "takes a target for each number of the output"));
}

TEST_CASE("a model of two inputs has the same bits under every plan", "[apps]") {
  const Workplace here;
  here.write("tiny.toml", own_placed);
  here.write("run.toml", own_run);
  std::string lines;
  for (int i = 0; i < 60; ++i)
    lines += "{\"text\": \"line " + std::to_string(i * i) +
             std::string(static_cast<std::size_t>(i % 7), 'a') + "\"}\n";
  here.write("docs.jsonl", lines);
  const auto with = [&](std::vector<std::string> settings) {
    settings.insert(settings.end(), {"train.steps=3", "data.train=docs.jsonl?documents=apart"});
    return digest_of_run(here, settings);
  };
  const auto one = with({"name=one", "pipeline.stages=1"});
  CHECK(one == with({"name=five", "pipeline.stages=5", "pipeline.recompute=true"}));
  CHECK(one == with({"name=halves", "pipeline.stages=3", "pipeline.schedule=zb-h1"}));
  CHECK(one == with({"name=two", "pipeline.replicas=2", "pipeline.stages=2"}));
  CHECK(mentions(troupe::tests::troupe(here, {"model", "show", "tiny.toml"}).out,
                 "from tokens [8], positions [8] to 300 classes"));

  const auto masked = [&](const std::string& name, const std::string& stages) {
    return digest_of_run(here, {"name=" + name, "pipeline.stages=" + stages, "train.steps=3",
                                "data.train=docs.jsonl?mask=0.3&mask_id=299"});
  };
  CHECK(masked("masked", "1") == masked("masked-four", "4"));

  const Ended eval = troupe::tests::troupe(
      here, {"eval", "one", "--data", "docs.jsonl?documents=padded", "--samples", "8"});
  INFO(eval.err);
  CHECK(eval.code == 0);
  const Ended sample = troupe::tests::troupe(here, {"sample", "one"});
  CHECK(sample.code == 3);
  CHECK(mentions(sample.err,
                 "takes more inputs than the text that it would continue, such as "
                 "'positions'"));
  const Ended lacking = troupe::tests::troupe(here, {"config", "check", "run.toml", "--data",
                                                     "--set", "data.train=made:markov?states=300"});
  CHECK(lacking.code == 3);
  CHECK(mentions(lacking.err,
                 "has no field 'positions': it has tokens, and the model takes tokens, "
                 "positions"));
}

TEST_CASE("a model of sources and targets trains on pairs and on cut spans", "[apps]") {
  const Workplace here;
  here.write("tiny.toml", own_pairs);
  here.write("run.toml", own_run);
  std::string pairs, texts;
  for (int i = 0; i < 40; ++i) {
    const auto number = std::to_string(i * i);
    pairs += R"({"source": ")" + number + R"(", "target": "<)" + number + "\"}\n";
    texts += R"({"text": "some words before )" + number + "\"}\n";
  }
  here.write("pairs.jsonl", pairs);
  here.write("texts.jsonl", texts);
  for (const std::string data :
       {"pairs.jsonl?start=1", "texts.jsonl?corrupt=0.2&end=2&documents=padded"}) {
    CAPTURE(data);
    const auto with = [&](const std::string& name, const std::string& stages) {
      return digest_of_run(here, {"name=" + name, "pipeline.stages=" + stages, "train.steps=3",
                                  "data.train=" + data});
    };
    const auto name = data.substr(0, 5);
    CHECK(with(name + "-one", "1") == with(name + "-three", "3"));
  }
}

TEST_CASE("the folder of a run has all that its own model needs", "[apps]") {
  const Workplace here;
  here.write("tiny.toml", own_tiny);
  here.write("run.toml", own_run);
  const auto one = digest_of_run(here, {"name=one"});
  std::filesystem::remove(here.path() / "tiny.toml");
  const Ended again = troupe::tests::troupe(
      here, {"train", "runs/one/config.toml", "--set", "name=two", "--output", "json"});
  INFO(again.err);
  REQUIRE(again.code == 0);
  CHECK(*again.events("checkpoint.saved").back().find("weights")->text() == one);
  const Ended measured =
      troupe::tests::troupe(here, {"eval", "one", "--data", "made:glyphs?stream=1"});
  INFO(measured.err);
  CHECK(measured.code == 0);

  const Ended exported =
      troupe::tests::troupe(here, {"checkpoint", "export", "one", "--to", "out/"});
  INFO(exported.err);
  REQUIRE(exported.code == 0);
  const Ended imported = troupe::tests::troupe(
      here, {"checkpoint", "import", "out", "--to", "runs/three/checkpoints"});
  INFO(imported.err);
  REQUIRE(imported.code == 0);
  CHECK(mentions(imported.out, one));
}

TEST_CASE("a run of one's own model does not resume with another description", "[apps]") {
  const Workplace here;
  here.write("tiny.toml", own_tiny);
  here.write("run.toml", own_run);
  digest_of_run(here, {"name=one"});
  std::string other = own_tiny;
  other.replace(other.find("{ dropout = 0.1 }"), 17, "{ dropout = 0.2 }");
  here.write("tiny.toml", other);
  const Ended resumed = troupe::tests::troupe(
      here, {"train", "run.toml", "--set", "name=one", "--set", "train.steps=24", "--resume"});
  CHECK(resumed.code != 0);
  CHECK(mentions(resumed.err, "description"));
}

TEST_CASE("models can be listed, shown and checked", "[apps]") {
  const Workplace here;
  const auto ask = [&](const std::vector<std::string>& words) {
    return troupe::tests::troupe(here, words);
  };
  here.write("tiny.toml", own_tiny);
  const Ended kinds = ask({"model", "ls"});
  CHECK(kinds.code == 0);
  CHECK(mentions(kinds.out, "gpt2      GPT-2: a causal transformer"));
  CHECK(mentions(ask({"model", "ls", "--output", "json"}).out, "{\"name\":\"mlp\",\"help\":"));

  const Ended shown = ask({"model", "show", "tiny.toml", "--set", "width=4"});
  INFO(shown.err);
  CHECK(shown.code == 0);
  CHECK(mentions(shown.out,
                 "\nblock3 receives [16, 4, 4]\n  block3.conv.weight      [32, 16, 3, 3]\n"));
  CHECK(mentions(shown.out, "4 units, 18,894 parameters; from [1, 28, 28] to 10 classes\n"));
  const Ended options = ask({"model", "show", "gpt2"});
  CHECK(options.code == 0);
  CHECK(mentions(options.out, "  vocab        required   Vocabulary size"));
  CHECK(mentions(options.err, "give vocab, context, width, layers, heads"));
  const Ended mlp = ask({"model", "show", "mlp", "--set", "dims=[4, 3, 2]", "--output", "json"});
  CHECK(mentions(mlp.out, "\"parameters\": 23"));
  CHECK(mentions(ask({"model", "show", "tiny.toml", "--set", "widht=4"}).err,
                 "tiny has no option 'widht'; did you mean 'width'?"));
  CHECK(
      mentions(ask({"model", "show", "gpt3"}).err, "\"gpt3\" is no kind of model; there are mlp"));

  CHECK(ask({"model", "check", "tiny.toml"}).out == "tiny.toml: good\n");
  std::string bad = own_tiny;
  bad.replace(bad.find("{ pool = \"mean\" }, "), 19, "");
  here.write("bad.toml", bad);
  const Ended refused = ask({"model", "check", "bad.toml"});
  CHECK(refused.code == 3);
  CHECK(mentions(refused.err,
                 "bad.toml:12:28: error: linear 'head' takes rows of numbers and gets "
                 "images [256, 2, 2], made at 9:9 (conv 'conv', i = 3)\n"));
  CHECK(ask({"model", "layers"}).out.starts_with("<!-- Written by `troupe model layers`"));
}
