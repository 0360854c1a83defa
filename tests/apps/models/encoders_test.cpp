// BERT and T5 as the program trains them: with several inputs, and with values that skip units.

#include <string>
#include <vector>

#include "apps/models/digest_of_run.h"
#include "apps/program.h"
#include "catch.h"
#include "core/json.h"

using namespace troupe;
using namespace troupe::tests;

namespace {

const std::string golden_families = TROUPE_TESTS "/golden/families/";

/// Writes documents of different lengths.
void write_token_documents(const Workplace& here) {
  std::string lines;
  for (int i = 0; i < 80; ++i) {
    lines += "{\"tokens\": [";
    const int length = 20 + i * i % 37;
    for (int j = 0; j < length; ++j)
      lines += (j > 0 ? ", " : "") + std::to_string(2 + (i * 31 + j * j * 7) % 40);
    lines += "]}\n";
  }
  here.write("docs.jsonl", lines);
}

std::string encoder_run(const std::string& model, const std::string& data) {
  return "[model]\n" + model + "[data]\ntrain = \"" + data +
         "\"\n[batch]\nglobal = 8\nmicro = 2\n[optimizer]\nkind = \"adamw\"\nlr = 0.001\n"
         "[precision]\ncompute = \"fp32\"\n[checkpoint]\nevery = \"1000 steps\"\n"
         "[train]\nsteps = 3\n";
}

const std::string cut_documents = "docs.jsonl?corrupt=0.15&mean=3&end=1&sentinel=47";
const std::string masked_documents =
    "docs.jsonl?mask=0.3&mask_id=1&special_last=1&documents=padded&end=0";

std::int64_t bytes_of_seat(const Value& seat) {
  std::int64_t total = 0;
  for (const char* what : {"weights", "gradients", "optimizer", "activations", "buffers"})
    total += *seat.find("bytes")->find(what)->integer();
  return total;
}

}  // namespace

TEST_CASE("T5 and BERT have the same bits under every plan", "[apps]") {
  const Workplace here;
  write_token_documents(here);
  const bool is_t5 = GENERATE(true, false);
  CAPTURE(is_t5);
  here.write("run.toml", is_t5 ? encoder_run("from = \"" + golden_families +
                                                 "t5\"\nsource = 32\ntarget = 16\n"
                                                 "dropout = 0.1\n",
                                             cut_documents)
                               : encoder_run("from = \"" + golden_families +
                                                 "bert\"\nlength = 16\ndropout = 0.1\n",
                                             masked_documents));
  const auto one = digest_of_run(here, {"name=one", "pipeline.stages=1"});
  CHECK(one == digest_of_run(here, {"name=two", "pipeline.stages=2", "pipeline.replicas=2"}));
  CHECK(one == digest_of_run(here, {"name=again", "pipeline.stages=2", "pipeline.recompute=true",
                                    "pipeline.schedule=zb-h1"}));
  if (!is_t5) {
    const Ended sample = troupe::tests::troupe(here, {"sample", "one"});
    CHECK(sample.code == 3);
    CHECK(mentions(sample.err, "takes more inputs than the text that it would continue"));
    return;
  }
  CHECK(one == digest_of_run(here, {"name=four", "pipeline.stages=4"}));
  CHECK(one == digest_of_run(here, {"name=five", "pipeline.stages=5", "pipeline.schedule=gpipe"}));
  CHECK(one == digest_of_run(here, {"name=rounds", "pipeline.stages=2", "pipeline.chunks=2",
                                    "pipeline.schedule=interleaved"}));
}

TEST_CASE("a plan's bytes of T5 are those that training holds", "[apps]") {
  // One process runs micro-batches one after another.
  const std::string more = GENERATE("pipeline.recompute=false", "pipeline.recompute=true");
  CAPTURE(more);
  const Workplace here;
  write_token_documents(here);
  const auto config = here.write(
      "run.toml", encoder_run("kind = \"t5\"\nvocab = 48\nsource = 64\ntarget = 32\nwidth = 64\n"
                              "layers = 3\nheads = 4\nhead_width = 16\nffn = 128\n",
                              "docs.jsonl?corrupt=0.15&mean=3&end=1&sentinel=47"));
  const std::vector<std::string> common{config,  "--output", "json", "--set", "pipeline.stages=1",
                                        "--set", more};
  auto words = common;
  words.insert(words.begin(), "plan");
  const Ended planned = troupe::tests::troupe(here, words);
  INFO(planned.err);
  REQUIRE(planned.code == 0);
  const auto figures = parse_json(planned.out);
  REQUIRE(figures);
  const auto expected = static_cast<double>(bytes_of_seat(figures->find("seats")->list()->front()));
  words.front() = "train";
  const Ended trained = troupe::tests::troupe(here, words);
  INFO(trained.err);
  REQUIRE(trained.code == 0);
  const double held = trained.events("step").back().find("memory")->number();
  CAPTURE(expected, held);
  CHECK(held < 1.05 * expected);
  CHECK(held > 0.95 * expected);
}

TEST_CASE("model show lists the inputs of T5 and what crosses its cuts", "[apps]") {
  const Workplace here;
  const Ended shown =
      troupe::tests::troupe(here, {"model", "show", "t5", "--set", "vocab=48", "--set", "source=24",
                                   "--set", "target=10", "--set", "width=32", "--set", "layers=2",
                                   "--set", "heads=4", "--set", "head_width=6", "--set", "ffn=40"});
  INFO(shown.err << shown.out);
  REQUIRE(shown.code == 0);
  CHECK(mentions(shown.out, "memory [24, 32]"));
  CHECK(mentions(shown.out, "memory_span [10, 2]"));
}

TEST_CASE("a causal kind keeps documents apart under every plan, and writes texts", "[apps]") {
  const Workplace here;
  std::string lines;
  for (int i = 0; i < 60; ++i) lines += "{\"text\": \"line " + std::to_string(i * i) + "\"}\n";
  here.write("docs.jsonl", lines);
  const std::string data = "docs.jsonl?documents=apart";
  const std::string sizes =
      "vocab = 256\ncontext = 24\nwidth = 16\nlayers = 3\nheads = 2\nloss.ignore = -100\n";
  const std::string kind = GENERATE("gpt2", "llama");
  CAPTURE(kind);
  const auto base = encoder_run("kind = \"" + kind + "\"\n" + sizes, data);
  here.write("run.toml", base + "[sample]\nevery = 3\nprompt = \"li\"\ntokens = 5\n");
  const auto with = [&](std::vector<std::string> settings) {
    return digest_of_run(here, std::move(settings));
  };
  const auto one = with({"name=one", "pipeline.stages=1", "model.apart=true"});
  CHECK(one == with({"name=three", "pipeline.stages=3", "model.apart=true"}));
  CHECK(one == with({"name=two", "pipeline.stages=2", "pipeline.replicas=2", "model.apart=true",
                     "pipeline.recompute=true"}));
  // The option is not there unless it is set, so that older runs stay the same.
  CHECK(one != with({"name=joined", "pipeline.stages=1"}));
  CHECK(mentions(here.read("runs/one/config.toml"), "apart = true"));
  const auto said = [&](const std::vector<std::string>& words) {
    const Ended ended = troupe::tests::troupe(here, words);
    INFO(ended.err);
    CHECK(ended.code == 0);
    return ended.out;
  };
  CHECK(said({"sample", "one", "--prompt", "li", "--tokens", "5"}) ==
        said({"sample", "three", "--prompt", "li", "--tokens", "5"}));
  CHECK(mentions(said({"eval", "one", "--data", data, "--samples", "8"}), "nats"));
  const Ended lacking = troupe::tests::troupe(
      here, {"config", "check", "run.toml", "--data", "--set", "model.apart=true", "--set",
             "data.train=made:markov?states=64"});
  CHECK(lacking.code == 3);
  CHECK(mentions(lacking.err, "has no field 'span'"));
}

TEST_CASE("the data decides the vocabulary of encoders and decoders", "[apps]") {
  const Workplace here;
  here.write("pairs.jsonl",
             "{\"source\": [1, 2, 41], \"target\": [6, 7]}\n"
             "{\"source\": [5, 4], \"target\": [9, 3, 8]}\n");
  here.write(
      "run.toml",
      encoder_run("kind = \"t5\"\nvocab = \"auto\"\nsource = 8\ntarget = 4\nwidth = 16\nlayers "
                  "= 2\nheads = 2\nhead_width = 8\nffn = 24\n",
                  "pairs.jsonl?start=44"));
  const auto one = digest_of_run(here, {"name=one"});
  // The start token is the largest one that the model reads.
  CHECK(one == digest_of_run(here, {"name=same", "model.vocab=45"}));
  CHECK(one != digest_of_run(here, {"name=more", "model.vocab=46"}));

  here.write(
      "sides.jsonl",
      "{\"first\": [3, 4, 5], \"second\": [6, 7]}\n{\"first\": [5, 4], \"second\": [9, 3]}\n");
  const std::string bert = encoder_run(
      "kind = \"bert\"\nvocab = \"auto\"\ncontext = 8\nwidth = 16\nlayers = 2\nheads = 2\n",
      "sides.jsonl?mask=0.5&mask_id=1&special_last=2");
  here.write("run.toml", bert);
  const auto typed = digest_of_run(here, {"name=typed", "model.pairs=true"});
  CHECK(typed == digest_of_run(here, {"name=cut", "model.pairs=true", "pipeline.stages=2"}));
  CHECK(typed != digest_of_run(here, {"name=blind"}));
}
