#include <string>

#include "catch.h"
#include "config/model_kinds.h"
#include "config/pages/render.h"
#include "config/recipe.h"
#include "config/toml/toml.h"
#include "core/json.h"
#include "good_run.h"

using namespace troupe;
using namespace troupe::config;

namespace {

const std::string tiny = R"(model = { format = 1, name = "tiny", help = "Convolutions." }
options.width = { least = 1, default = 32, help = "Channels of the first block." }
input.image = { type = "f32", shape = [1, 28, 28] }
loss = { kind = "cross_entropy", classes = 10 }
every.norm = { kind = "batch" }
[[part]]
name = "block{i}"
repeat = { i = 3 }
body = [{ conv = "conv", out = "width * 2 ** i", kernel = 3, stride = 2 }, { norm = "bn" }, "relu",
  { residual = [{ conv = "inner", out = "given", kernel = 3 }, { norm = "inner_bn" }, "relu"] }]
[[part]]
body = [{ pool = "mean" }, { linear = "head", out = 10 }]
)";

const std::string run = R"([model]
kind = "../models/tiny.toml"
width = 4

[data]
train = "made:glyphs"

[batch]
global = 32
micro = 4

[train]
steps = 10
)";

Result<Loaded> load_run(const std::string& model, std::vector<std::string> settings = {},
                        const std::string& text = run) {
  return load(
      {.path = "configs/run.toml",
       .settings = std::move(settings),
       .read = in_memory(
           {{"configs/run.toml", text}, {"models/tiny.toml", model}, {"other.toml", model}})});
}

std::string error_in_model(const std::string& model, std::vector<std::string> settings = {}) {
  const auto loaded = load_run(model, std::move(settings));
  return loaded ? "" : loaded.error().text.substr(0, loaded.error().text.find('\n'));
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const auto at = text.find(what);
  REQUIRE(at != text.npos);
  return text.replace(at, what.size(), by);
}

}  // namespace

TEST_CASE("a configuration takes the description of a model from a file beside it", "[config]") {
  const auto loaded = load_run(tiny);
  if (!loaded) FAIL(loaded.error().text);
  CHECK(loaded->warnings.empty());
  CHECK(loaded->config.model.kind == "tiny");
  CHECK(*loaded->config.model.options.find("width") == Value(4));
  const auto model = model_from(loaded->config.model.table());
  REQUIRE(model.ok());
  CHECK(model->units.size() == 3);
  CHECK(model->units[2].layer->output({2, 8, 7, 7}) == Shape{2, 10});
}

TEST_CASE("the path of a description is relative to the text that names it", "[config]") {
  CHECK(error_in_model(tiny, {"model.kind=other.toml"}) == "");
  const auto based =
      load({.path = "a/b/run.toml",
            .read = in_memory({{"a/b/run.toml", "extends = \"../../configs/x.toml\""},
                               {"configs/x.toml", run},
                               {"models/tiny.toml", tiny}})});
  if (!based) FAIL(based.error().text);
  CHECK(load_run(tiny, {"model.kind=none.toml"})
            .error()
            .text.starts_with("--set:1:12: error: model.kind: cannot read 'none.toml'"));
}

TEST_CASE("the description travels in a message, and gives the same run", "[config]") {
  const auto loaded = load_run(tiny);
  REQUIRE(loaded.ok());
  const auto body = parse_json(to_json(loaded->tree));
  REQUIRE(body.ok());
  const auto sent = load_message(*body, "run.submit");
  if (!sent) FAIL(sent.error().text);
  CHECK(recipe_text(recipe_of(sent->tree)) == recipe_text(recipe_of(loaded->tree)));
  const auto shown = load_text(show(*loaded, Show::values));
  if (!shown) FAIL(shown.error().text);
  CHECK(recipe_text(recipe_of(shown->tree)) == recipe_text(recipe_of(loaded->tree)));

  Value path = *body;
  path.find("model")->set("kind", "tiny.toml");
  CHECK(load_message(path, "run.submit")
            .error()
            .text.starts_with("run.submit: error: a message cannot name the file of a model"));
}

TEST_CASE("the digest of a description is a line of the recipe", "[config]") {
  const auto line = [](const Loaded& loaded) {
    const auto text = recipe_text(recipe_of(loaded.tree));
    const auto at = text.find("model.description = ");
    return at == text.npos ? "" : text.substr(at, text.find('\n', at) - at);
  };
  const auto first = load_run(tiny), commented = load_run("# A comment.\n" + tiny);
  const auto other = load_run(replaced(tiny, "stride = 2", "stride = 1"));
  REQUIRE(first.ok());
  REQUIRE(other.ok());
  CHECK(line(*first).size() == std::string("model.description = \"\"").size() + 32);
  CHECK(line(*first) == line(*commented));
  CHECK(line(*first) != line(*other));
  CHECK(line(*load_text(good_run)).empty());
}

TEST_CASE("the recipe of a model of the program is as before there were descriptions", "[config]") {
  // Checkpoints have this digest. With another one they would not resume.
  CHECK(to_string(recipe_digest(recipe_of(load_text(good_run)->tree))) ==
        "b29f2d56c1e347a3dc254dfc2f61010b");
}

TEST_CASE("options of a model of one's own are checked like others", "[config]") {
  CHECK(error_in_model(tiny, {"model.width=0"}) ==
        "--set:1:13: error: model.width wants an integer of at least 1, but found an integer 0");
  CHECK(error_in_model(tiny, {"model.widht=8"}) == "--set:1:7: error: unknown key 'model.widht'");
  CHECK(error_in_model(tiny, {"model.heads=8"}) == "--set:1:7: error: unknown key 'model.heads'");
  CHECK(error_in_model(replaced(tiny, "default = 32, ", ""), {}) == "");
}

TEST_CASE("an error in a description names its line", "[config]") {
  CHECK(error_in_model(replaced(tiny, "{ pool = \"mean\" }, ", "")) ==
        "models/tiny.toml:12:9: error: linear 'head' takes rows of numbers and gets images [16, 4, "
        "4], made at 9:9 (conv 'conv', i = 2)");
  CHECK(error_in_model(replaced(tiny, "repeat = { i = 3 }", "repeat = { i = 9 }")) == "");
  CHECK(
      error_in_model(replaced(tiny, "relu", "gelu")) ==
      "models/tiny.toml:9:93: error: 'gelu' is no kind of step of this program; did you mean "
      "'relu'?; there are embed, positions, class_token, first, linear, relu, act, scale, softcap, "
      "dropout, "
      "attention, feed_forward, moe, patches, norm, conv, pool, upsample, residual, parallel, "
      "keep, take, add, concat, cut");
  CHECK(error_in_model(replaced(tiny, "given", "givn")) ==
        "models/tiny.toml:10:41: error: character 1 of \"givn\": no value has the name "
        "'givn'; did you mean 'given'?");
  CHECK(error_in_model(replaced(tiny, "[[part]]", "[[parts]]")).starts_with("models/tiny.toml:"));
  CHECK(error_in_model(replaced(tiny, "tiny", "gpt2")) ==
        "models/tiny.toml:1:9: error: model.name = \"gpt2\" in a description is the name of a kind "
        "that the program comes with; choose another name");
  CHECK(error_in_model(replaced(tiny, "help = \"Convolutions.\" }", "help = "))
            .starts_with("models/tiny.toml:"));
  auto body = parse_json(to_json(load_run(tiny)->tree));
  body->find("model")->find("description")->find("loss")->set("classes", 11);
  CHECK(load_message(*body, "run.submit").error().text ==
        "run.submit: error: model.description.loss.classes: the loss takes rows of 11 classes and "
        "gets rows of numbers [10], made at part[1].body[1] (linear 'head')\n");
}

TEST_CASE("a preset stands for a kind with options, and others may stand beside it", "[config]") {
  const std::string rest =
      "[data]\ntrain = \"made:glyphs\"\n[batch]\nglobal = 2\n[train]\nsteps = 1\n";
  const auto named = load_text("[model]\nkind = \"resnet50\"\nclasses = 10\n" + rest);
  if (!named) FAIL(named.error().text);
  const auto spelled = load_text(
      "[model]\nkind = \"resnet\"\nwidths = [64, 128, 256, 512]\nblocks = [3, 4, 6, 3]\n"
      "block = \"bottleneck\"\nstem = \"imagenet\"\nchannels = 3\nclasses = 10\n" +
      rest);
  if (!spelled) FAIL(spelled.error().text);
  CHECK(named->tree == spelled->tree);
  CHECK(recipe_digest(recipe_of(named->tree)) == recipe_digest(recipe_of(spelled->tree)));
  const auto wrong =
      load_text("[model]\nkind = \"resnet50\"\nbase_width = 0\nblocks = [1]\n" + rest);
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().text.find("model.base_width wants an integer from 1 to 4096") !=
        std::string::npos);
  CHECK(error_in_model(tiny + "\n[preset]\nsmall = { width = 4 }\n")
            .find("only the descriptions that the program comes with have presets") !=
        std::string::npos);
}

TEST_CASE("remedies that square gradients are refused where targets are numbers", "[config]") {
  const auto squared =
      replaced(tiny, R"({ kind = "cross_entropy", classes = 10 })", R"({ kind = "squared" })");
  const std::vector<std::string> late = {"pipeline.schedule=pipedream", "pipeline.stages=2",
                                         "staleness.delay_compensation=0.1"};
  const auto classes = load_run(tiny, late);
  INFO((classes ? "" : classes.error().text));
  CHECK(classes.ok());
  CHECK_FALSE(classes->config.model.may_ignore());
  const auto refused = load_run(squared, late);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().text.find("before it is known how many targets of a step count, which the "
                                  "loss of tiny leaves open; leave it out") != std::string::npos);
  const auto numbers = load_run(squared);
  REQUIRE(numbers.ok());
  CHECK(numbers->config.model.may_ignore());
  CHECK_FALSE(numbers->config.model.ignored_target());
}
