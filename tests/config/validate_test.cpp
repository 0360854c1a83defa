#include "config/validate.h"

#include "catch.h"
#include "config/schema.h"
#include "core/json.h"
#include "good_run.h"

using namespace troupe;
using namespace troupe::config;

namespace {

std::string complaint_about(const std::string& text) { return load_text(text).error().text; }

}  // namespace

TEST_CASE("an error about an unknown key suggests a similar key", "[config]") {
  const std::string text =
      "[model]\nkind = \"mlp\"\ndims = [2, 2]\n[data]\ntrain = \"made:gaussians\"\n"
      "[train]\nsteps = 1\n[batch]\nglobal = 4\ngobal = 64\n";
  CHECK(complaint_about(text) ==
        "run.toml:10:1: error: unknown key 'batch.gobal'\n"
        "   10 | gobal = 64\n"
        "      | ^~~~~ did you mean 'batch.global'?   (keys here: global, micro)\n");
}

TEST_CASE("an error about a key in the wrong table names the right table", "[config]") {
  CHECK(complaints({"batch.lr=1"}) ==
        "--set:1:7: error: unknown key 'batch.lr'\n"
        "    1 | batch.lr=1\n"
        "      |       ^~ did you mean 'optimizer.lr'?   (keys here: global, micro)\n");
  CHECK(complaint({"steps=1"}) == "error: unknown key 'steps'");
  CHECK(complaints({"steps=1"}).find("did you mean 'train.steps'?") != std::string::npos);
}

TEST_CASE("an error about an unknown key without a similar one lists the keys", "[config]") {
  CHECK(complaints({"log.banana=1"}) ==
        "--set:1:5: error: unknown key 'log.banana'\n"
        "    1 | log.banana=1\n"
        "      |     ^~~~~~ (keys here: every, staleness, tensorboard)\n");
}

TEST_CASE("a quoted key with a dot is not a path", "[config]") {
  CHECK(complaint_about("\"batch.global\" = 3\n" + good_run).find("unknown key 'batch.global'") !=
        std::string::npos);
}

TEST_CASE("all errors are reported at once", "[config]") {
  const auto all =
      complaints({"batch.gobal=1", "seed=x", "optimizer.kind=adamx", "model.layers=0"});
  CHECK(all.find("unknown key 'batch.gobal'") != all.npos);
  CHECK(all.find("seed wants an integer of at least 0, but found a string \"x\"") != all.npos);
  CHECK(all.find("optimizer.kind wants one of sgd, adam, adamw, nadamw, muon, but found a string "
                 "\"adamx\"") != all.npos);
  CHECK(all.find("did you mean 'adam'?") != all.npos);
  CHECK(all.find("model.layers wants an integer from 1 to 4096, but found an integer 0") !=
        all.npos);
}

TEST_CASE("training data is named once", "[config]") {
  const std::string rest =
      "[model]\nkind = \"mlp\"\ndims = [2, 2]\n[train]\nsteps = 1\n[batch]\nglobal = 1\n"
      "[optimizer]\nkind = \"sgd\"\nlr = 0.1\n[data]\n";
  CHECK(complaint_about(rest) ==
        "run.toml: error: data.train is missing; name the training data, or a mixture of several "
        "in data.mix\n");
  CHECK(complaint_about(rest + "train = \"a.bin\"\nmix = \"b.bin 1\"\n")
            .find("data.mix is in place of data.train, and both are set") != std::string::npos);
}

TEST_CASE("missing keys are named with their types", "[config]") {
  CHECK(complaint_about("[model]\nkind = \"gpt2\"\nlayers = 1\nwidth = 1\nheads = 1\ncontext = 1\n"
                        "[batch]\nmicro = 1\n") ==
        "run.toml: error: missing key 'train.steps': an integer of at least 1\n"
        "run.toml:1:1: error: missing key 'model.vocab', which model.kind = \"gpt2\" needs: an "
        "integer of at least 2, or \"auto\"\n"
        "    1 | [model]\n"
        "      | ^~~~~~~\n"
        "run.toml:7:1: error: missing key 'batch.global': an integer of at least 1\n"
        "    7 | [batch]\n"
        "      | ^~~~~~~\n");
  CHECK(complaint_about("").starts_with(
      "run.toml: error: missing key 'model.kind': one of mlp, gpt2, llama, vit, resnet, gpt_neox, "
      "gptj, phi, gemma, mixtral, qwen3_moe, bert, t5, vit_tiny_patch16_224, "));
}

TEST_CASE("a key of another model or optimizer kind is reported as such", "[config]") {
  CHECK(complaints({"optimizer.momentum=0.9"}) ==
        "--set:1:11: error: optimizer.momentum has no meaning with optimizer.kind = \"adamw\"; it "
        "belongs to sgd, muon\n"
        "    1 | optimizer.momentum=0.9\n"
        "      |           ^~~~~~~~ keys here: kind, lr, changes, betas, eps, weight_decay, "
        "clip_norm, "
        "group, schedule\n");
  CHECK(complaint({"model.dims=[1, 2]"}) ==
        "error: model.dims has no meaning with model.kind = \"gpt2\"; it belongs to mlp");
}

TEST_CASE("if a kind is wrong, its keys are not checked", "[config]") {
  const auto all = complaints({"model.kind=gtp2"});
  CHECK(all ==
        "--set:1:12: error: model.kind wants one of mlp, gpt2, llama, vit, resnet, gpt_neox, gptj, "
        "phi, gemma, mixtral, qwen3_moe, bert, t5, vit_tiny_patch16_224, vit_small_patch16_224, "
        "vit_small_patch32_224, vit_base_patch16_224, vit_base_patch16_384, vit_base_patch32_224, "
        "vit_large_patch16_224, vit_huge_patch14_224, resnet18, resnet34, resnet50, resnet101, "
        "resnet152, wide_resnet50_2, wide_resnet101_2, resnext50_32x4d, resnext101_32x8d, "
        "resnext101_64x4d, but found a string \"gtp2\"\n"
        "    1 | model.kind=gtp2\n"
        "      |            ^~~~ did you mean 'gpt2'?\n");
}

TEST_CASE("an error says how a value is written that is meant", "[config]") {
  CHECK(complaints({"train.device=gpu"}).find("^~~ 'cuda' is the GPU\n") != std::string::npos);
  CHECK(complaints({"train.steps=1e3"}).find("^~~ write 1000\n") != std::string::npos);
  CHECK(complaints({"train.steps=1.5"}).find("write") == std::string::npos);
  CHECK(complaints({"train.steps=1e300"}).find("write") == std::string::npos);
}

TEST_CASE("a table is rejected for a value, and a value for a table", "[config]") {
  CHECK(complaint({"optimizer=adamw"}) ==
        "error: optimizer is a table of keys, but found a string \"adamw\"");
  CHECK(complaint({"batch.global={ a = 1 }"}) ==
        "error: batch.global wants an integer of at least 1, but found a table { a = 1 }");
  CHECK(complaint({"model=1"}) == "error: model is a table of keys, but found an integer 1");
}

TEST_CASE("each type's error says what is expected", "[config]") {
  const std::pair<const char*, const char*> cases[] = {
      {"batch.global=1.5", "batch.global wants an integer of at least 1, but found a number 1.5"},
      {"batch.micro=some",
       "batch.micro wants an integer of at least 1, or \"auto\", but found a string \"some\""},
      {"batch.global=5000000000",
       "batch.global wants an integer of at least 1, but found an integer 5000000000, which is "
       "more "
       "than 1000000000"},
      {"optimizer.lr=-1", "optimizer.lr wants a number from 0 to 1000, but found an integer -1"},
      {"optimizer.lr=nan", "optimizer.lr wants a number from 0 to 1000, but found a number nan"},
      {"optimizer.lr=inf", "optimizer.lr wants a number from 0 to 1000, but found a number inf"},
      {"optimizer.betas=[0.9]",
       "optimizer.betas wants a list of 2 numbers from 0 to 0.999999, but found a list [0.9]"},
      {"optimizer.betas=[0.9, 1]",
       "optimizer.betas wants a list of 2 numbers from 0 to 0.999999, but found a list [0.9, 1]"},
      {"pipeline.recompute=1",
       "pipeline.recompute wants true, false, or a list of these such as [true, false], but found "
       "an "
       "integer 1"},
      {"pipeline.stages=[1, 2]",
       "pipeline.stages wants an integer from 1 to 4096, \"auto\", or boundaries such as [0, 3, "
       "6], but found a list [1, 2]"},
      {"pipeline.stages=[0, 3, 3, 6]",
       "pipeline.stages wants an integer from 1 to 4096, \"auto\", or boundaries such as [0, 3, "
       "6], but found a list [0, 3, 3, 6]"},
      {"pipeline.memory=2",
       "pipeline.memory wants a size of at least \"1MiB\", such as \"2GiB\", or \"auto\", but "
       "found an integer 2"},
      {"pipeline.memory=2G",
       "pipeline.memory: found \"2G\", which is no size; write a number and its unit (B, KiB, MiB, "
       "GiB, TiB, kB, MB, GB, TB): \"2GiB\""},
      {"pipeline.memory=1B",
       "pipeline.memory wants a size of at least \"1MiB\", such as \"2GiB\", or \"auto\", but "
       "found a string \"1B\""},
      {"checkpoint.every=100",
       "checkpoint.every wants \"100 steps\", or a duration such as \"5m\", but found an integer "
       "100"},
      {"checkpoint.every=0 steps",
       "checkpoint.every: found \"0 steps\"; write how many steps, 1 or more: \"100 steps\""},
      {"elastic.nodes=8:1",
       "elastic.nodes: found \"8:1\", where the fewest are more than the most"},
      {"elastic.nodes=0:1",
       "elastic.nodes wants the fewest and the most from 1 to 4096, such as \"1:8\", but found a "
       "string \"0:1\""},
      {"limits.head_patience=10",
       "limits.head_patience wants a duration of at least \"1ms\", such as \"5m\", but found an "
       "integer 10"},
      {"name=3", "name wants a string, but found an integer 3"},
      {"exactness=loose", "exactness wants one of bits, samples, but found a string \"loose\""},
  };
  for (const auto& [setting, wanted] : cases)
    CHECK(complaint({setting}) == "error: " + std::string(wanted));
}

TEST_CASE("a list of sizes is not empty", "[config]") {
  const std::string text = "[model]\nkind = \"mlp\"\ndims = []\n";
  CHECK(complaint_about(text).find(
            "model.dims wants a list of integers of at least 1, but found a list []") !=
        std::string::npos);
}

TEST_CASE("a JSON null is rejected", "[config]") {
  Value body = load_text(good_run)->tree;
  body.set("seed", Value());
  CHECK(load_message(body, "run.submit").error().text ==
        "run.submit: error: seed wants an integer of at least 0, but found nothing\n");
}

TEST_CASE("an omitted key gets the default of the chosen kind", "[config]") {
  const auto lr = [](const char* kind) {
    return value_at(load_text(good_run, {std::string("optimizer.kind=") + kind})->tree,
                    "optimizer.lr")
        ->number();
  };
  CHECK(lr("adamw") == 1e-3);
  CHECK(lr("nadamw") == 2e-3);
  const Value tree = load_text(good_run, {"optimizer.kind=muon"})->tree;
  CHECK(to_json(*tree.find("optimizer")) ==
        R"({"kind":"muon","lr":0.001,"momentum":0.95,"nesterov":true,"betas":[0.9,0.999],)"
        R"("eps":1e-08,"weight_decay":0.1,"schedule":{"kind":"constant","warmup_steps":0,)"
        R"("total_steps":"auto","min_lr":0}})");
}

TEST_CASE("validating a complete tree changes nothing", "[config]") {
  const auto loaded = load_text(good_run);
  REQUIRE(loaded.ok());
  const auto again = load_message(loaded->tree, "run.submit");
  REQUIRE(again.ok());
  CHECK(again->tree == loaded->tree);
}

TEST_CASE("a preset sets three keys, each of which may be overridden", "[config]") {
  const auto staleness = [](std::vector<std::string> settings) {
    settings.push_back("pipeline.schedule=pipedream");
    const auto loaded = load_text(good_run, settings);
    REQUIRE(loaded.ok());
    return loaded->config.staleness;
  };
  using S = RunConfig::Staleness;
  const auto stashed = staleness({"staleness.preset=ws_msnag_ga"});
  CHECK(stashed.predict == S::Predict::msnag);
  CHECK(stashed.linearize_at == S::LinearizeAt::forward);
  CHECK(stashed.gap_penalty == S::GapPenalty::elementwise);
  CHECK(staleness({"staleness.preset=msnag", "staleness.predict=linear"}).predict ==
        S::Predict::linear);
  CHECK(staleness({"staleness.preset=ws"}).nag_return);
  CHECK(staleness({"staleness.preset=ws"}).lag == 0);
  CHECK(staleness({"staleness.preset=aggmsnag", "pipeline.replicas=2"}).predict ==
        S::Predict::msnag);
  const auto two_versions = load_text(good_run, {"pipeline.schedule=pipedream-2bw"});
  REQUIRE(two_versions.ok());
  CHECK(two_versions->config.staleness.lag == 1);
  const auto with_recompute =
      load_text(good_run, {"pipeline.schedule=pipedream", "staleness.preset=ga_jfl"});
  REQUIRE(with_recompute.ok());
  CHECK(with_recompute->config.pipeline.recompute.in(0));
  CHECK_FALSE(value_at(with_recompute->tree, "staleness.preset"));
}
